"""WGAN-GP: the penalty's gradient is part of the graph (create_graph), the samples are cut off on purpose."""

import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.Softplus(), nn.Linear(16, 1))
opt_G = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.0, 0.9))
opt_D = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.0, 0.9))


def gradient_penalty(real, fake):
    alpha = torch.rand(real.size(0), 1)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = D(mixed)
    (grad,) = torch.autograd.grad(scores, mixed, torch.ones_like(scores), create_graph=True)
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


for i in range(4):
    real = torch.randn(8, 2) + 2
    fake = G(torch.randn(8, 4)).detach()
    loss_D = D(fake).mean() - D(real).mean() + 10 * gradient_penalty(real, fake)
    opt_D.zero_grad()
    loss_D.backward()
    opt_D.step()
    print(i, "D", loss_D.item().hex())
    if i % 2 == 1:
        loss_G = -D(G(torch.randn(8, 4))).mean()
        opt_G.zero_grad()
        loss_G.backward()
        opt_G.step()
        print(i, "G", loss_G.item().hex())
