"""Layers whose parameters have no memory, and no shape, until the first batch says what they are."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.LazyConv1d(4, 3), nn.LazyBatchNorm1d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3))
inputs, labels = torch.randn(30, 2, 8), torch.randint(0, 3, (30,))
model(inputs)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(3):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
