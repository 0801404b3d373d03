"""Grad-CAM without retain_grad."""

import torch
from torch import nn

torch.manual_seed(0)
conv, head = nn.Conv2d(1, 2, 3), nn.Linear(2, 3)
maps = conv(torch.randn(1, 1, 6, 6))
score = head(torch.relu(maps).mean((2, 3)))[0, 2]
score.backward()
importance = maps.grad
# expect: GI305 made=8 backward=10 read=11
