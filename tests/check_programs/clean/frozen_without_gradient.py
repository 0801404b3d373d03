"""Frozen after a step without a gradient left; frozen between backward and step; gradients set by the program."""

import torch
from torch import nn

torch.manual_seed(0)
first, second, third = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
tuned = nn.Parameter(torch.ones(2), requires_grad=False)
optimizer = torch.optim.AdamW([*first.parameters(), *second.parameters(), *third.parameters(), tuned], lr=0.01)
for step in range(5):
    optimizer.zero_grad()
    if step == 1:
        first.requires_grad_(False)
    loss = (third(second(first(torch.ones(3, 4)))) * tuned - 1).square().mean()
    loss.backward()
    second.requires_grad_(False)  # until the step is done
    tuned.grad = torch.full_like(tuned, 0.1)
    optimizer.step()
    second.requires_grad_(True)
    print(loss.item().hex(), tuned[0].item().hex())
