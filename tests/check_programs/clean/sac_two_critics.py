"""Soft actor-critic: the actor's loss also fills the critics' gradients, which are zeroed before the critics step."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 4))
critics = nn.ModuleList(nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1)) for _ in range(2))
targets = copy.deepcopy(critics).requires_grad_(False)
actor_opt, critic_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critics.parameters())


def act(s):
    mean, log_std = actor(s).chunk(2, -1)
    dist = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
    u = dist.rsample()
    return u.tanh(), (dist.log_prob(u) - (1 - u.tanh().pow(2) + 1e-6).log()).sum(-1, keepdim=True)


for _ in range(3):
    s, a, r, s2 = torch.randn(16, 3), torch.rand(16, 2) * 2 - 1, torch.randn(16, 1), torch.randn(16, 3)
    with torch.no_grad():
        a2, logp2 = act(s2)
        y = r + 0.99 * (torch.min(*(q(torch.cat([s2, a2], 1)) for q in targets)) - 0.2 * logp2)
    critic_loss = sum((q(torch.cat([s, a], 1)) - y).pow(2).mean() for q in critics)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    new_a, logp = act(s)
    actor_loss = (0.2 * logp - torch.min(*(q(torch.cat([s, new_a], 1)) for q in critics))).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    for slow, fast in zip(targets.parameters(), critics.parameters(), strict=True):
        slow.data.lerp_(fast.data, 0.005)
    print(critic_loss.item().hex(), actor_loss.item().hex())
