"""Batches that next(iter(...)) draws: at random, the only one, once for all, and the same for each validation."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
shuffled, whole, fixed = DataLoader(data, 8, shuffle=True), DataLoader(data, 64), DataLoader(data, 8)
x_fixed, y_fixed = next(iter(fixed))
for _ in range(8):
    x, y = next(iter(shuffled))
    x_all, y_all = next(iter(whole))
    loss = (model(x) - y).square().mean() + (model(x_all) - y_all).square().mean()
    loss = loss + (model(x_fixed) - y_fixed).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        x, y = next(iter(fixed))
        print((model(x) - y).square().mean().item().hex())
