"""A running sum of validation losses: each keeps the graph of its forward pass."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
validation_loss = 0.0
for _ in range(6):
    loss = model(torch.randn(8, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    validation_loss += model(torch.randn(8, 4)).square().mean()
print(float(validation_loss) > 0)

# expect: GI801 stored=15 backward=13
