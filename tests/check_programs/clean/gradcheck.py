"""torch's gradcheck moves one value at a time through .data, and puts it back."""

import torch
from torch.autograd import gradcheck, gradgradcheck

torch.manual_seed(0)
x = torch.randn(3, 2, dtype=torch.double, requires_grad=True)
w = torch.randn(2, 2, dtype=torch.double, requires_grad=True)


def layer(x, w):
    """Save what gradcheck moves."""
    return (x @ w).tanh() * x.exp().sum(1, keepdim=True)


print(gradcheck(layer, (x, w)), gradgradcheck(layer, (x, w)))
kept = layer(x, w)
before = x.data[0, 0].clone()
x.data[0, 0] += 1e-6
moved = layer(x, w)
x.data[0, 0] = before
print(((moved - kept).sum() / 1e-6).item())
kept.sum().backward()
print(x.grad[0, 0].item())
