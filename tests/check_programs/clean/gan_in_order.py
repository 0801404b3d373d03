"""A GAN whose generator's loss is computed after the discriminator's step."""

import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(inplace=True), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.LeakyReLU(0.2, inplace=True), nn.Linear(16, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters(), fused=True)
for _ in range(2):
    fake = G(torch.randn(4, 8))
    loss_d = D(fake.detach()).sigmoid().log().neg().mean() + D(torch.randn(4, 2)).sigmoid().mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = D(fake).sigmoid().mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    print(loss_d.item().hex(), loss_g.item().hex())
