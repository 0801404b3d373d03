"""A GAN that prints how its discriminator sees new samples of a generator in train mode, without a graph."""

import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
og, od = torch.optim.Adam(G.parameters(), 2e-3), torch.optim.Adam(D.parameters(), 2e-3)
bce = nn.BCEWithLogitsLoss()
for it in range(8):
    real = torch.randn(32, 2) * 0.5 + 1
    fake = G(torch.randn(32, 4))
    ld = bce(D(real), torch.ones(32, 1)) + bce(D(fake.detach()), torch.zeros(32, 1))
    od.zero_grad()
    ld.backward()
    od.step()
    lg = bce(D(fake), torch.ones(32, 1))
    og.zero_grad()
    lg.backward()
    og.step()
    if it % 2 == 0:
        with torch.no_grad():
            shown = G(torch.randn(64, 4))
            after = bce(D(shown), torch.zeros(64, 1))
        print(it, after.item())
