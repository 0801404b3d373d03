"""Hooks that change gradients as they should: a multiplier climbs, an adversary is reversed, some calls are skipped."""

import torch
from torch import nn

torch.manual_seed(0)
body, head, critic = nn.Linear(5, 7), nn.Linear(7, 2), nn.Linear(7, 1)
multiplier = nn.Parameter(torch.tensor(0.1))
everything = [*body.parameters(), *head.parameters(), *critic.parameters(), multiplier]
optimizer = torch.optim.SGD(everything, lr=0.05)
multiplier.register_hook(lambda grad: -grad)
rows = torch.zeros(2, 1)
rows[0] = 1
head.weight.register_hook(lambda grad: grad * rows)
for step in range(6):
    is_early = step < 2
    features = body(torch.randn(9, 5)).relu()
    branch = features.clone()
    branch.register_hook(lambda grad: -0.1 * grad)
    features.register_hook(lambda grad, scale=float(not is_early): grad * scale)
    penalty = head.weight.norm() - 1
    loss = nn.functional.cross_entropy(head(features), torch.randint(0, 2, (9,)))
    loss = loss + critic(branch).square().mean() + multiplier * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
