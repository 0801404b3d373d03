"""DP-SGD by torch.func: vmap of grad gives every sample's gradient, and .grad is then set by hand."""

import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)


def sample_loss(params, x, y):
    return F.cross_entropy(functional_call(model, params, (x.unsqueeze(0),)), y.unsqueeze(0))


def private_gradients(x, y, bound=0.5, sigma=0.1):
    params = {name: p.detach() for name, p in model.named_parameters()}
    grads = vmap(grad(sample_loss), in_dims=(None, 0, 0))(params, x, y)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
    scale = (bound / (norms + 1e-6)).clamp(max=1)
    for name, p in model.named_parameters():
        clipped = torch.einsum("n,n...->...", scale, grads[name])
        p.grad = (clipped + sigma * bound * torch.randn_like(p)) / len(x)
    return norms.mean().item()


x, y = torch.randn(12, 4), torch.randint(0, 3, (12,))
public_x, public_y = torch.randn(6, 4), torch.randint(0, 3, (6,))
for _ in range(3):
    loss = F.cross_entropy(model(public_x), public_y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    norm = private_gradients(x, y)
    optimizer.step()
    print(loss.item().hex(), norm.hex())
