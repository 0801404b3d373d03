"""A PINN for u'' = -u, u(0) = 1, u'(0) = 0: both derivatives are made with create_graph, and tanh has a second one."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)


def derivative(u, t):
    return torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]


def residual(t):
    u = net(t)
    return derivative(derivative(u, t), t) + u


zero = torch.zeros(1, 1, requires_grad=True)
for _ in range(4):
    t = torch.rand(32, 1).mul_(3).requires_grad_()
    start = net(zero)
    physics = residual(t).square().mean()
    boundary = (start - 1).square().mean() + derivative(start, zero).square().mean()
    loss = physics + 10 * boundary
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
