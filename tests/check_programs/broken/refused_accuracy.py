"""The loss is an accuracy, computed from argmax."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 3)
labels = torch.tensor([0, 1, 2])
predicted = model(torch.randn(3, 4)).argmax(dim=1)
loss = (predicted != labels).float().mean()
loss.backward()
# expect: GI302 read=9 detached=9 used=10 backward=11
