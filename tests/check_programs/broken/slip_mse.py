"""Targets without the last dimension. torch warns; the loss falls all the same, and the model learns the mean."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Linear(4, 1)
x, y = torch.randn(16, 4), torch.randn(16)
loss = F.mse_loss(model(x), y)
loss.backward()
# expect: GI701 broadcast=10 reduced=10 backward=11
