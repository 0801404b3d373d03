import fingerprint
import torch
from torch import nn

torch.manual_seed(12)
model = nn.Linear(3, 3)
with torch.inference_mode():
    frozen = torch.randn(2, 3)
    view = frozen[0]


def attempt(what):
    try:
        print("fine", type(what()).__name__)
    except RuntimeError as error:
        print(type(error).__name__, str(error).splitlines()[0])


for _ in range(3):
    attempt(lambda: model(frozen))
    attempt(lambda: (frozen * torch.ones(3, requires_grad=True)).sum().backward())
    attempt(lambda: frozen.requires_grad_())
    attempt(lambda: frozen.add_(1))
    attempt(lambda: view.mul_(2).sum())
    attempt(lambda: frozen._version)
    attempt(lambda: model(frozen.clone()).sum().backward())
    attempt(lambda: torch.autograd.grad(frozen.sum(), model.weight))
fingerprint.show(model)
