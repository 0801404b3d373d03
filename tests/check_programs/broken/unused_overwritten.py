"""A residual branch is computed, and then its variable is overwritten."""

import torch
from torch import nn

torch.manual_seed(0)
first, second, third = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters(), *third.parameters()], lr=0.1)
for _ in range(2):
    x = torch.randn(3, 4)
    h = torch.relu(first(x))
    r = torch.relu(second(h))
    r = third(h)
    loss = (h + r).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI303 read=12 last=12 backward=16 step=17
