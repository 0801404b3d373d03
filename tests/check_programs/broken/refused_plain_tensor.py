"""Gradient descent on a tensor that was made without requires_grad."""

import torch

torch.manual_seed(0)
x, y = torch.randn(20), torch.randn(20)
slope = torch.randn(1)
loss = (slope * x - y).pow(2).mean()
loss.backward()
# expect: GI302 made=8 backward=9
