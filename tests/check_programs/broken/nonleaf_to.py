"""A parameter was converted, and the converted one is kept."""

import torch
from torch import nn

torch.manual_seed(0)
w = nn.Parameter(torch.randn(3)).to(torch.float64)
loss = w.pow(2).sum()
loss.backward()
rate = 0.1
gradient = w.grad
# expect: GI305 made=7 backward=9 read=11
