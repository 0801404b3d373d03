import fingerprint
import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, vmap

torch.manual_seed(16)
model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
params = dict(model.named_parameters())


def loss_of(p, x, y):
    return nn.functional.cross_entropy(functional_call(model, p, (x[None],)), y[None])


for _ in range(3):
    x, y = torch.randn(5, 4), torch.randint(0, 2, (5,))
    rows = vmap(grad(loss_of), in_dims=(None, 0, 0))({k: v.detach() for k, v in params.items()}, x, y)
    norms = sum(g.flatten(1).square().sum(1) for g in rows.values()).sqrt()
    print([f"{norm:.7f}" for norm in norms.tolist()])
    nn.functional.cross_entropy(model(x), y).backward()
gradients, value = grad_and_value(lambda w: (w**3).sum())(torch.arange(3.0))
print(gradients.tolist(), value.item())
try:
    vmap(lambda v: v.item())(x)
except RuntimeError as error:
    print(str(error).splitlines()[0])
fingerprint.show(model)
