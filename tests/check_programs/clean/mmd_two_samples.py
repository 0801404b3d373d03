"""A generator trained by kernel MMD: all pairs are wanted, and the bandwidth is a constant of the data."""

import torch
from torch import nn

torch.manual_seed(0)


def sq_dist(a, b):
    return (a.unsqueeze(1) - b.unsqueeze(0)).pow(2).sum(-1)


def mmd(x, y, scales=(0.5, 1.0, 2.0)):
    with torch.no_grad():
        bandwidth = sq_dist(torch.cat([x, y]), torch.cat([x, y])).median().clamp(min=1e-3)
    total = x.new_zeros(())
    for scale in scales:
        kxx = torch.exp(-sq_dist(x, x) / (scale * bandwidth))
        kyy = torch.exp(-sq_dist(y, y) / (scale * bandwidth))
        kxy = torch.exp(-sq_dist(x, y) / (scale * bandwidth))
        total = total + kxx.mean() + kyy.mean() - 2 * kxy.mean()
    return total


generator = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.RMSprop(generator.parameters(), lr=1e-2)
for _ in range(3):
    real = torch.randn(12, 2) * 0.5 + torch.tensor([2.0, -1.0])
    fake = generator(torch.randn(10, 3))
    loss = mmd(fake, real)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
