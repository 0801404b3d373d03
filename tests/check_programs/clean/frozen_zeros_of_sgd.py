"""Frozen parameters whose gradient is zero, in an optimizer that such a gradient cannot move."""

import torch
from torch import nn

torch.manual_seed(0)
trunk, head = nn.Linear(4, 6), nn.Linear(6, 1)
optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=0.05)
for step in range(5):
    trunk.requires_grad_(step % 2 == 0)
    optimizer.zero_grad(set_to_none=False)
    loss = (head(torch.relu(trunk(torch.ones(8, 4)))) - 1).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
