"""The loss is written by hand, so nothing warns."""

import torch
from torch import nn


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x)


torch.manual_seed(0)
model = Regression()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(2):
    x = torch.randn(8, 4)
    y = x.sum(dim=1)
    error = model(x) - y
    loss = (error**2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI701 broadcast=22 reduced=23 backward=25
