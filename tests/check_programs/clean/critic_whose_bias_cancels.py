"""A Wasserstein critic: the bias of its last layer cancels out of its loss, and only the generator's loss moves it."""

import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
maker = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 8))
for_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
for_maker = torch.optim.Adam(maker.parameters(), lr=1e-3)
for step in range(12):
    real = torch.randn(16, 8) + 1
    for_critic.zero_grad()
    made = maker(torch.randn(16, 4))
    loss = critic(made.detach()).mean() - critic(real).mean()
    loss.backward()
    for_critic.step()
    for_maker.zero_grad()
    if step % 2 == 0:
        (-critic(maker(torch.randn(16, 4))).mean()).backward()
        for_maker.step()
    print(loss.item().hex())
