"""Binary cross entropy by hand; the other way round: the prediction lost a dimension that the targets have."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
x, y = torch.randn(8, 4), torch.randint(0, 2, (8, 1)).float()
p = torch.sigmoid(model(x)).squeeze()
gain = y * torch.log(p) + (1 - y) * torch.log(1 - p)
loss = -gain.mean()
loss.backward()
# expect: GI701 broadcast=10 reduced=11 backward=12
