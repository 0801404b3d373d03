"""An L1 penalty that reads the weights through .data, in a function of its own."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def l1():
    total = torch.tensor(0.0)
    for p in model.parameters():
        total = total + p.data.abs().sum()
    return total


for _ in range(2):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,)))
    loss = loss + 1e-2 * l1()
    loss.backward()
    optimizer.step()
# expect: GI306 detached=14 used=21 backward=22
