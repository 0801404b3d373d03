"""A frozen trunk is in eval mode for the clean half of each step, and adapts its statistics in the other."""

import torch
from torch import nn

torch.manual_seed(0)
trunk = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)).requires_grad_(False)
model = nn.Sequential(trunk, nn.Linear(8, 2))
optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(16, 4)
    for noise in (0.0, 0.1):
        model.train()
        if not noise:
            trunk.eval()
        loss = model(x + noise * torch.randn(16, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
