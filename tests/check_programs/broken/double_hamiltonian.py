"""A Hamiltonian network whose loss is made of gradients only."""

import torch
from torch import nn

torch.manual_seed(0)
energy = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(energy.parameters())
for _ in range(2):
    state = torch.randn(6, 2, requires_grad=True)
    dh = torch.autograd.grad(energy(state).sum(), state)[0]
    velocity = torch.stack((dh[:, 1], -dh[:, 0]), dim=1)
    loss = (velocity - torch.randn(6, 2)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI402 detached=11 used=12 backward=15
