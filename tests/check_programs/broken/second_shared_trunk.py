"""Two losses share a trunk, and each has a backward of its own."""

import torch
from torch import nn

torch.manual_seed(0)
trunk, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
h = torch.tanh(trunk(torch.randn(3, 4)))
loss_a = a(h).mean()
loss_b = b(h).mean()
loss_a.backward()
loss_b.backward()
# expect: GI401 old=8 new=10 freed=11 backward=12
