"""Four linear layers without an activation function, of which the middle is narrow: the principal components."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 8), nn.Linear(8, 3), nn.Linear(3, 8), nn.Linear(8, 12))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(64, 3) @ torch.randn(3, 12)
for _ in range(20):
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
