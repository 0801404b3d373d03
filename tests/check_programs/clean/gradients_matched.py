"""Data are learned so that their gradients match those of real data, which are constants on purpose."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 2)
learned = torch.randn(6, 4, requires_grad=True)
optimizer = torch.optim.SGD([learned], lr=0.1)
for _ in range(4):
    real = torch.autograd.grad(net(torch.randn(16, 4)).square().mean(), net.parameters())
    target = [g.detach().clone() for g in real]
    ours = torch.autograd.grad(net(learned).square().mean(), net.parameters(), create_graph=True)
    loss = sum((a - b).square().sum() for a, b in zip(ours, target, strict=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item())
