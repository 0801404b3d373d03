"""The advice of the error message, retain_graph=True, is taken: now each step goes back to the first one."""

import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.GRUCell(4, 8), nn.Linear(8, 1)
h = torch.zeros(2, 8)
for _ in range(3):
    h = cell(torch.randn(2, 4), h)
    loss = head(h).pow(2).mean()
    loss.backward(retain_graph=True)
# expect: GI801 old=10 new=10 backward=12
