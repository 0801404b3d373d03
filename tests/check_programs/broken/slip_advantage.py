"""PPO: a critic's [N, 1] makes the advantages [N, 1], and the ratio is [N]."""

import torch
from torch import nn

torch.manual_seed(0)
actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)
states, actions, returns = torch.randn(8, 4), torch.randint(3, (8,)), torch.randn(8, 1)
old = torch.distributions.Categorical(logits=actor(states)).log_prob(actions).detach()
with torch.no_grad():
    advantages = returns - critic(states)
ratio = (torch.distributions.Categorical(logits=actor(states)).log_prob(actions) - old).exp()
clipped = ratio.clamp(0.8, 1.2)
surrogate = torch.min(ratio * advantages, clipped * advantages)
loss = -surrogate.mean()
loss.backward()
# expect: GI701 broadcast=14 reduced=15 backward=16
