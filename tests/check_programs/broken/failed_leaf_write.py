"""Gradient descent by hand, and the weights are written to while gradients are recorded."""

import torch

torch.manual_seed(0)
x = torch.randn(16, 3)
y = x.sum(1, keepdim=True)
weight = torch.zeros(3, 1, requires_grad=True)
for _ in range(3):
    loss = (x @ weight - y).square().mean()
    loss.backward()
    weight -= 0.1 * weight.grad
    weight.grad = None
# expect: GI001 failed=12
