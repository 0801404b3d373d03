"""Two optimizers; that of the critic clears its gradients, and the other one steps in its place."""

import torch
from torch import nn

torch.manual_seed(0)
actor, critic = nn.Linear(4, 2), nn.Linear(6, 1)
of_actor = torch.optim.Adam(actor.parameters(), lr=1e-3)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _ in range(8):
    x = torch.randn(16, 4)
    value = critic(torch.cat([x, torch.randn(16, 2)], 1))
    of_critic.zero_grad()
    (value - x[:, :1]).square().mean().backward()
    of_actor.step()
    of_actor.zero_grad()
    (-critic(torch.cat([x, actor(x)], 1)).mean()).backward()
    of_actor.step()
# expect: GI365 optimizer=9 backward=14 cleared=13
