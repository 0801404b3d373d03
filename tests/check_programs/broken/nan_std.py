"""The standard deviation of values that are all the same."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 4)
with torch.no_grad():
    model.weight.zero_()
    model.bias.zero_()
h = model(torch.randn(5, 3))
spread = h.var(0).sqrt()
loss = (spread - 1).pow(2).sum()
loss.backward()
# expect: GI501 made=12 backward=14
