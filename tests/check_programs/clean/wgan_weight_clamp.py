"""WGAN: the critic's weights are clamped in place, after its step and before the next forward."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(3, 16), nn.ReLU(inplace=True), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2, inplace=True), nn.Linear(16, 1))
opt_g = torch.optim.RMSprop(generator.parameters(), lr=5e-3)
opt_c = torch.optim.RMSprop(critic.parameters(), lr=5e-3)
for _ in range(2):
    for _ in range(2):
        real = torch.randn(16, 2) * 0.3 + 1
        with torch.no_grad():
            fake = generator(torch.randn(16, 3))
        critic_loss = critic(fake).mean() - critic(real).mean()
        opt_c.zero_grad()
        critic_loss.backward()
        opt_c.step()
        with torch.no_grad():
            for p in critic.parameters():
                p.clamp_(-0.1, 0.1)
        print("critic", critic_loss.item().hex())
    for p in critic.parameters():
        p.requires_grad_(False)
    generator_loss = -critic(generator(torch.randn(16, 3))).mean()
    opt_g.zero_grad()
    generator_loss.backward()
    opt_g.step()
    for p in critic.parameters():
        p.requires_grad_(True)
    print("generator", generator_loss.item().hex())
