"""An ordinary differential equation u' = -u: the derivative in the residual carries no graph."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters())
for _ in range(2):
    t = torch.rand(10, 1, requires_grad=True)
    u = net(t)
    du = torch.autograd.grad(u.sum(), t, retain_graph=True)[0]
    loss = (du + u).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI402 gradient=12 used=13 backward=15
