"""An average is called before training, and then only after it was given the statistics."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
average = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(80, 6) * 3 + 2
y = (x[:, 0] > 2).long()


@torch.no_grad()
def accuracy(net):
    return (net(x).argmax(1) == y).float().mean().item()


print("before", accuracy(average))
for epoch in range(3):
    for rows in torch.randperm(80).split(16):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for kept, new in zip(average.parameters(), model.parameters(), strict=True):
                kept.lerp_(new, 0.1)
    for kept, new in zip(average.buffers(), model.buffers(), strict=True):
        kept.copy_(new)
    print(epoch, accuracy(average))
