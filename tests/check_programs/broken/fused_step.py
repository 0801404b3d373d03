"""A fused optimizer does not raise the version: no error, a wrong gradient."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
x = torch.randn(2, 4)
first = model(x).sum()
second = model(x).pow(2).sum()
first.backward()
optimizer.step()
second.backward()
# expect: GI103 saved=11 written=13
