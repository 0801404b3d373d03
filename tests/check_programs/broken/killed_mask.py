"""The loss mask is empty."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 4)
mask = torch.zeros(3, 4)
error = model(torch.randn(3, 4)) * mask
(error + 1).pow(2).mean().backward()
# expect: GI601 zeroed=9 backward=10
