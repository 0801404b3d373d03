"""A scalar times a matrix: one node turns a 4 x 4 gradient into a gradient for the scalar leaf by summing it.

Try: gradinspect trace samples/broadcast_scalar.py
"""

import torch

torch.manual_seed(0)
x = torch.randn(4, 4, requires_grad=True)
y = torch.tensor(2.0, requires_grad=True)
loss = (x * y).sum()
loss.backward()

print("dloss/dy is a sum over x:", torch.equal(y.grad, x.detach().sum()))
