"""An average without the statistics is called after each epoch only."""

import copy

import torch
from torch import nn


class Average:
    def __init__(self, model):
        self.model = copy.deepcopy(model).eval()
        for p in self.model.parameters():
            p.requires_grad = False

    @torch.no_grad()
    def update(self, model):
        for kept, new in zip(self.model.parameters(), model.parameters(), strict=True):
            kept.mul_(0.9).add_(new, alpha=0.1)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
average = Average(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(80, 6) * 3 + 2
y = (x[:, 0] > 2).long()
for epoch in range(3):
    for rows in torch.randperm(80).split(16):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(model)
    with torch.no_grad():
        print(epoch, (average.model(x).argmax(1) == y).float().mean().item())
# expect: GI385 updated=18 1.running_mean 1.running_var
