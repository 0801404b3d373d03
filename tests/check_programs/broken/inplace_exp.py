"""An output that backward needs is added to in place, as in `out += residual`."""

import torch

x = torch.ones(3, requires_grad=True)
y = x.exp()
y += 1
y.sum().backward()
# expect: GI101 saved=6 written=7
