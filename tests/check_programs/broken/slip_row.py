"""The targets of an array file are one row, [1, 64]; the predictions are a column."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, targets = torch.randn(64, 4), torch.tensor([[0.1 * n for n in range(64)]])
for _ in range(3):
    error = model(inputs) - targets
    loss = (error**2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# expect: GI701 broadcast=11 reduced=12
