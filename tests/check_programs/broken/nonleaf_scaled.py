"""The weight was scaled after requires_grad, so it is no leaf."""

import torch

torch.manual_seed(0)
w = torch.randn(4, requires_grad=True) * 0.1
loss = (w * torch.randn(4)).sum()
loss.backward()
gradient = w.grad
# expect: GI305 made=6 backward=8 read=9
