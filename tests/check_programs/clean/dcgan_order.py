"""The discriminator learns from two backward calls before the generator has one."""

import torch
from torch import nn

torch.manual_seed(0)
G, D = nn.Linear(8, 4), nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = nn.BCEWithLogitsLoss()
for _ in range(2):
    D.zero_grad()
    real_loss = bce(D(torch.randn(5, 4)), torch.ones(5, 1))
    real_loss.backward()
    fake = G(torch.randn(5, 8))
    fake_loss = bce(D(fake.detach()), torch.zeros(5, 1))
    fake_loss.backward()
    opt_d.step()
    G.zero_grad()
    loss = bce(D(fake), torch.ones(5, 1))
    loss.backward()
    opt_g.step()
    print(real_loss.item().hex(), loss.item().hex())
