"""An exponential overflows in the forward pass."""

import torch

x = torch.tensor([100.0, 1.0], requires_grad=True)
big = x.exp()
loss = big.sum()
loss.backward()
# expect: GI502 made=6 backward=8
