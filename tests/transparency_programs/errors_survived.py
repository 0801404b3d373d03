import fingerprint
import torch
from torch import nn

torch.manual_seed(37)
model = nn.Sequential(nn.Linear(3, 3), nn.ELU(), nn.Linear(3, 1))


def attempt(what):
    try:
        what()
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
    else:
        print("fine")


def refuse(gradient):
    raise KeyError("a hook refuses")


for _ in range(3):
    h = model(torch.randn(2, 3))
    attempt(h.backward)
    attempt(lambda: h.backward(torch.ones(3, 3)))
    attempt(lambda: h.detach().sum().backward())
    attempt(lambda: h.sum().backward())
    attempt(lambda: h.sum().backward())
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(refuse)
    attempt(lambda: y.sum().backward())
    z = x.exp()
    z.add_(1)
    attempt(lambda: z.sum().backward())
    attempt(lambda: x.add_(1))
    attempt(lambda: torch.autograd.grad(x.sum(), model[0].weight))
    attempt(lambda: torch.autograd.grad(x.sum(), [x, model[0].weight], allow_unused=True))
    attempt(lambda: torch.autograd.backward([]))
    attempt(lambda: x.sum().backward(inputs=[]))
fingerprint.show(model, x)
