"""A network for a heat equation: the first derivative carries no graph for the second."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.linspace(0, 1, 10).unsqueeze(1).requires_grad_()
u = net(x)
u_x = torch.autograd.grad(u, x, torch.ones_like(u), retain_graph=True)[0]
u_xx = torch.autograd.grad(u_x, x, torch.ones_like(u_x), create_graph=True)[0]
loss = (u_xx + u).pow(2).mean()
loss.backward()
# expect: GI402 detached=10 backward=11
