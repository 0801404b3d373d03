"""A hidden value of each step is asked for its gradient, which a line that checks for None does not count on."""

import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(5, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.05)
signal = torch.randn(64, 5)
target = signal.sum(dim=1, keepdim=True)
for step in range(6):
    hidden = first(signal).relu()
    if step % 2:
        hidden.retain_grad()
    loss = (second(hidden) - target).square().mean()
    optimizer.zero_grad()
    loss.backward()
    if hidden.grad is not None:
        print(hidden.grad.norm())
    optimizer.step()
