"""WGAN-GP: the penalty differentiates a gradient, taken with create_graph, so the critic does learn from it."""

import torch
from torch import nn

torch.manual_seed(0)


def penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((slope.norm(dim=1) - 1) ** 2).mean()


critic = nn.Sequential(nn.Linear(2, 16), nn.SiLU(), nn.Linear(16, 1))
generator = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
for step in range(4):
    real, fake = torch.randn(8, 2) + 2, generator(torch.randn(8, 3)).detach()
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(critic, real, fake)
    opt_c.zero_grad()
    loss.backward()
    opt_c.step()
    print("critic", loss.item().hex())
    if step % 2:
        loss = -critic(generator(torch.randn(8, 3))).mean()
        opt_g.zero_grad()
        loss.backward()
        opt_g.step()
        print("generator", loss.item().hex())
