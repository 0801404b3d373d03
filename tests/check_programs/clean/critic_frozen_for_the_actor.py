"""Freezes the critic while the actor learns, and unfreezes it again."""

import torch
from torch import nn

torch.manual_seed(0)
actor, critic = nn.Linear(4, 2), nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
of_actor = torch.optim.Adam(actor.parameters(), lr=0.01)
of_critic = torch.optim.Adam(critic.parameters(), lr=0.01)
state = torch.randn(32, 4)
for _ in range(10):
    critic.requires_grad_(False)
    of_actor.zero_grad()
    (-critic(torch.cat([state, actor(state)], 1)).mean()).backward()
    of_actor.step()
    critic.requires_grad_(True)
    of_critic.zero_grad()
    value = critic(torch.cat([state, actor(state).detach()], 1))
    (value - state.sum(1, keepdim=True)).square().mean().backward()
    of_critic.step()
