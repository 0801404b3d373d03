"""WGAN-GP as it should be, with a mixture of experts' choice and an LBFGS step beside it."""

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.ModuleList([nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)) for _ in range(3)])
optimizer = torch.optim.Adam(critic.parameters())
real, fake = torch.randn(8, 2), torch.randn(8, 2)
mixed = torch.lerp(real, fake, torch.rand(8, 1)).requires_grad_()
(gradient,) = torch.autograd.grad(critic[1](mixed).sum(), mixed, create_graph=True)
loss = critic[1](fake).mean() - critic[1](real).mean() + ((gradient.norm(2, dim=1) - 1) ** 2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
x = torch.zeros(2, requires_grad=True)
solver = torch.optim.LBFGS([x], max_iter=2)


def closure():
    solver.zero_grad()
    error = ((x - 3) ** 2).sum()
    error.backward()
    return error


print(loss.item().hex(), solver.step(closure).item().hex())
