"""Gradient descent by hand: the slope's value goes through torch.tensor, and its .grad is None."""

import torch

torch.manual_seed(0)
x, y = torch.randn(20), torch.randn(20)
slope = torch.zeros(1, requires_grad=True)
offset = torch.zeros(1, requires_grad=True)
prediction = torch.tensor([slope * value for value in x]) + offset
loss = (prediction - y).pow(2).mean()
loss.backward()
with torch.no_grad():
    offset -= 0.1 * offset.grad
    slope -= 0.1 * slope.grad
# expect: GI301 read=9 detached=9 backward=11 wanted=14
