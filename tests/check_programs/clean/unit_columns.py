"""Columns and rows of length one, each multiplied over the axis that was normalized; and one factor that is not."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
first, second, pool = nn.Linear(6, 4), nn.Linear(6, 4), nn.Linear(4, 4, bias=False)
optimizer = torch.optim.Adam([p for part in (first, second, pool) for p in part.parameters()], lr=0.01)
x = torch.randn(10, 6)
noisy = x + 0.1 * torch.randn(10, 6)
for _ in range(8):
    one, other = first(x), second(noisy)
    correlations = F.normalize(one, dim=0).T @ F.normalize(other, dim=0)
    loss = (correlations - torch.eye(4)).square().sum()
    cosines = F.normalize(one, dim=1) @ F.normalize(other, dim=1).T / 0.2
    loss = loss + F.cross_entropy(cosines, torch.arange(10))
    mixed = F.normalize(other, dim=0) @ F.normalize(pool.weight, dim=0)
    loss = loss + (mixed - one).square().mean()
    energies = F.normalize(one, dim=0).square().sum(1)
    loss = loss + 0.01 * energies.var()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
