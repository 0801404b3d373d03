"""Clipping comes after the step, by value."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = model(torch.randn(5, 4)).exp().mean()
    loss.backward()
    optimizer.step()
    nn.utils.clip_grad_value_(model.parameters(), 0.1)
# expect: GI364 clipped=14 backward=12 step=13
