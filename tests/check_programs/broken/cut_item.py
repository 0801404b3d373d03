"""A regularizer is computed with Python numbers and comes back as a constant."""

import torch
from torch import nn

torch.manual_seed(0)
model, gate = nn.Linear(4, 1), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*model.parameters(), *gate.parameters()], lr=0.1)
for _ in range(2):
    x = torch.randn(6, 4)
    strength = torch.sigmoid(gate(x)).mean().item()
    scale = torch.tensor(max(strength, 0.1))
    loss = (model(x) * scale).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI301 read=11 detached=11 used=12 backward=15 step=16
