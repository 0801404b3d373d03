"""The branch that torch.where leaves out has an infinite derivative."""

import torch

x = torch.zeros(3, requires_grad=True)
root = x.sqrt()
y = torch.where(x > 0, root, torch.zeros(3))
y.sum().backward()
# expect: GI501 made=6 backward=8
