"""Hinge GAN with spectral norm: u and v are buffers rewritten by each forward, between two calls of one graph."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import spectral_norm


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(spectral_norm(nn.Linear(2, 12)), nn.LeakyReLU(0.1))
        self.head = spectral_norm(nn.Linear(12, 1))

    def forward(self, x):
        return self.head(self.body(x)).squeeze(1)


torch.manual_seed(0)
g, d = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, 2)), Discriminator()
g_opt = torch.optim.Adam(g.parameters(), lr=1e-3, betas=(0.5, 0.999))
d_opt = torch.optim.Adam(d.parameters(), lr=4e-3, betas=(0.5, 0.999))
for _ in range(3):
    real, fake = torch.randn(10, 2).add_(1), g(torch.randn(10, 5))
    d_loss = F.relu(1 - d(real)).mean() + F.relu(1 + d(fake.detach())).mean()
    d_opt.zero_grad(set_to_none=True)
    d_loss.backward()
    d_opt.step()
    g_loss = -d(fake).mean()
    g_opt.zero_grad(set_to_none=True)
    g_loss.backward()
    g_opt.step()
    print(d_loss.item().hex(), g_loss.item().hex())
