"""A distance of zero under a root of a sum of squares."""

import torch

a = torch.ones(2, 3, requires_grad=True)
distance = (a - a.detach()).pow(2).sum(-1)
loss = distance.sqrt().sum()
loss.backward()
# expect: GI501 made=7 backward=8
