"""A model of one output against four targets, and the reverse in a loss function of torch."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
one, four = nn.Linear(4, 1), nn.Linear(4, 4)
optimizer = torch.optim.SGD([*one.parameters(), *four.parameters()], lr=0.1)
for _ in range(3):
    x, y = torch.randn(64, 4), torch.randn(64, 4)
    loss = (one(x) - y).abs().mean()
    loss = loss + F.mse_loss(four(x), y[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# expect: GI701 broadcast=12 reduced=12
# expect: GI701 broadcast=13 reduced=13
