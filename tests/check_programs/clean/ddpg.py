"""DDPG: the critic is frozen while the actor climbs it, so gradients pass through it but not into it."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1), nn.Tanh())
critic = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
actor_target, critic_target = copy.deepcopy(actor), copy.deepcopy(critic)
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)

for _ in range(3):
    s, a, r, s2 = torch.randn(12, 3), torch.rand(12, 1) * 2 - 1, torch.randn(12, 1), torch.randn(12, 3)
    with torch.no_grad():
        y = r + 0.99 * critic_target(torch.cat([s2, actor_target(s2)], 1))
    critic_loss = (critic(torch.cat([s, a], 1)) - y).pow(2).mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    critic.requires_grad_(False)
    actor_loss = -critic(torch.cat([s, actor(s)], 1)).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    critic.requires_grad_(True)

    with torch.no_grad():
        for net, slow in ((actor, actor_target), (critic, critic_target)):
            for p, p_slow in zip(net.parameters(), slow.parameters(), strict=True):
                p_slow.mul_(0.995).add_(0.005 * p)
    print(critic_loss.item().hex(), actor_loss.item().hex())
