"""A prediction is clamped, and all of it lies outside."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
prediction = (model(torch.randn(3, 4)) + 50).clamp(0, 1)
loss = (prediction - 0.5).pow(2).mean()
loss.backward()
# expect: GI601 zeroed=8 backward=10
