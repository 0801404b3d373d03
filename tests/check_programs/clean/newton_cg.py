"""Hessian-free training: one retained gradient graph serves several Hessian-vector products, then is dropped."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 6), nn.Softplus(), nn.Linear(6, 1))
params = list(net.parameters())
x, y = torch.randn(20, 3), torch.randn(20, 1)


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


def conjugate_gradient(product, b, iterations=4):
    z, r = torch.zeros_like(b), b.clone()
    p, rr = r.clone(), r @ r
    for _ in range(iterations):
        hp = product(p)
        alpha = rr / (p @ hp)
        z, r = z + alpha * p, r - alpha * hp
        p, rr = r + (r @ r) / rr * p, r @ r
    return z


for _ in range(3):
    loss = F.mse_loss(net(x), y)
    g = flat(torch.autograd.grad(loss, params, create_graph=True))

    def damped_hvp(v, g=g):
        return flat(torch.autograd.grad(g, params, v, retain_graph=True)).detach() + 0.5 * v

    direction = conjugate_gradient(damped_hvp, g.detach())
    with torch.no_grad():
        nn.utils.vector_to_parameters(nn.utils.parameters_to_vector(params) - direction, params)
    print(loss.item().hex())
