"""The graph is built outside the loop that calls backward."""

import torch

w = torch.ones(3, requires_grad=True)
scale = w.exp()
loss = scale.sum()
for _ in range(2):
    loss.backward()
# expect: GI401 made=7 freed=9 backward=9
