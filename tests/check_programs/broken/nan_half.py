"""A product that float16 cannot hold."""

import torch

x = torch.tensor([300.0, 400.0], dtype=torch.float16, requires_grad=True)
weight = torch.ones(2, dtype=torch.float16, requires_grad=True)
square = x * x
scaled = square * weight
loss = scaled.float().sum()
loss.backward()
# expect: GI502 made=7 backward=10
