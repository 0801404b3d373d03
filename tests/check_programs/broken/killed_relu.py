"""A layer whose units are all dead."""

import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(4, 4), nn.Linear(4, 1)
nn.init.constant_(first.bias, -100.0)
h = torch.relu(first(torch.randn(3, 4)))
loss = second(h).pow(2).mean()
loss.backward()
# expect: GI601 zeroed=9 backward=11
