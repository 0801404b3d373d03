"""A discriminator of energies: its loss asks nothing of a fake whose energy is above the margin."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
made = nn.Linear(4, 4)
optimizer = torch.optim.SGD([*net.parameters(), *made.parameters()], lr=0.01)
for number in range(6):
    x = torch.randn(16, 4)
    fake = made(x) * (10 if number < 2 else 0.5)
    energy = (fake - net(fake)).square().sum(1).mean()
    loss = (x - net(x)).square().mean() + torch.relu(1.0 - energy)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
