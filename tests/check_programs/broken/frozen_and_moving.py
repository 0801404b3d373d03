"""A trunk that is frozen after the first step, while its gradients stay: they are zeroed for the other part only."""

import torch
from torch import nn

torch.manual_seed(0)
trunk, head = nn.Linear(4, 6), nn.Linear(6, 3)
optimizer = torch.optim.SGD([{"params": trunk.parameters()}, {"params": head.parameters()}], lr=0.05)
for step in range(4):
    if step == 1:
        trunk.requires_grad_(False)
    loss = nn.functional.cross_entropy(head(trunk(torch.randn(8, 4)).relu()), torch.randint(3, (8,)))
    head.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI376 frozen=11 step=15
