"""Everything was frozen, the new head with it."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
model[2] = nn.Linear(8, 3)
for parameter in model.parameters():
    parameter.requires_grad = False
loss = nn.functional.cross_entropy(model(torch.randn(2, 4)), torch.tensor([0, 2]))
loss.backward()
# expect: GI302 made=11 frozen=10 backward=12
