"""Convolution, batch norm, ReLU in place, fused AdamW."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(144, 2))
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
for _ in range(3):
    optimizer.zero_grad()
    loss = model(torch.randn(2, 3, 8, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
