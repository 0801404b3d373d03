"""LSGAN, generator first: its backward also fills the discriminator's grads, which are zeroed before its own."""

import torch
from torch import nn

torch.manual_seed(0)
netG = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(True), nn.Linear(16, 3), nn.Tanh())
netD = nn.Sequential(nn.Linear(3, 16), nn.LeakyReLU(0.2, inplace=True), nn.Dropout(0.25), nn.Linear(16, 1))
criterion = nn.MSELoss()
optimizer_G = torch.optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
valid, invalid = torch.ones(8, 1), torch.zeros(8, 1)
for epoch in range(3):
    imgs = torch.rand(8, 3) * 2 - 1

    optimizer_G.zero_grad()
    gen_imgs = netG(torch.randn(8, 6))
    g_loss = criterion(netD(gen_imgs), valid)
    g_loss.backward()
    optimizer_G.step()

    optimizer_D.zero_grad()
    real_loss = criterion(netD(imgs), valid)
    fake_loss = criterion(netD(gen_imgs.detach()), invalid)
    d_loss = 0.5 * (real_loss + fake_loss)
    d_loss.backward()
    optimizer_D.step()
    print(epoch, g_loss.item().hex(), d_loss.item().hex())
