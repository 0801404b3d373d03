"""The gradient of a value is scaled, by adding a part of it without a graph."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(4):
    value = model(torch.randn(8, 4)).square().mean()
    loss = value * 0.5 + value.detach() * 0.5
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
