"""Every weight is initialized to zero: only the last bias ever learns."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
for parameter in model.parameters():
    nn.init.zeros_(parameter)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    loss = (model(torch.randn(16, 4)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# expect: GI602 used=12 backward=14
