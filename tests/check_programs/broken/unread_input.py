"""The gradient is asked for with respect to a view that the loss was not computed from."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
x = torch.randn(3, 4, requires_grad=True)
y = model(x).sum()
rows = x[0]
(gradient,) = torch.autograd.grad(y, rows)
# expect: GI304 backward=11
