"""A mean over a mask that is empty: nothing divided by nothing."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
scale = nn.Parameter(torch.ones(()))
mask = torch.zeros(3, 1)
error = (model(torch.randn(3, 4)).pow(2) * mask).sum()
share = error / mask.sum()
loss = share * scale
loss.backward()
# expect: GI502 made=11 backward=13
