"""The optimizer was made of a model, and a copy of it is trained."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
base = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(base.parameters(), lr=0.1)
model = copy.deepcopy(base)
for _ in range(4):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(16, 6)), torch.randint(2, (16,)))
    loss.backward()
    optimizer.step()
# expect: GI361 optimizer=10 backward=15
