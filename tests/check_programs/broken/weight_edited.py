"""A weight is normalised by hand between the forward pass and backward."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
loss = model(torch.randn(2, 4)).sum()
with torch.no_grad():
    model[2].weight.div_(model[2].weight.norm())
loss.backward()
# expect: GI101 saved=8 written=10
