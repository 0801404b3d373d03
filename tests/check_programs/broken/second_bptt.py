"""Truncated backpropagation through time without a detach."""

import torch
from torch import nn

torch.manual_seed(0)
cell = nn.RNNCell(4, 4)
h = torch.zeros(2, 4)
for _ in range(3):
    h = cell(torch.randn(2, 4), h)
    loss = h.pow(2).sum()
    loss.backward()
# expect: GI401 old=10 new=10 freed=12 backward=12
