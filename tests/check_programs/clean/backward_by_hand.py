"""Modules with a backward of their own, which the program calls by hand after the gradient of the loss."""

import torch
from torch import nn


class Scale(nn.Module):
    """One factor, with its derivative written out."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(4))

    def forward(self, x):
        self.x = x
        return x * self.factor

    def backward(self, grad):
        """Set the gradient of the factor, and return that of the input."""
        self.factor.grad = (grad * self.x).sum(0)
        return grad * self.factor


class Loss(nn.Module):
    """A module that wraps the call of the engine: its backward takes no gradient."""

    def forward(self, x, y):
        self.value = (x - y).square().mean()
        return self.value

    def backward(self):
        """Run the engine."""
        self.value.backward()


torch.manual_seed(0)
inner, scale, loss = nn.Linear(3, 4), Scale(), Loss()
optimizer = torch.optim.SGD([*inner.parameters(), *scale.parameters()], lr=0.05)
x, y = torch.randn(20, 3), torch.randn(20, 4)
for _ in range(6):
    optimizer.zero_grad()
    hidden = inner(x)
    leaf = scale(hidden.detach()).detach().requires_grad_()
    loss(leaf, y)
    loss.backward()
    hidden.backward(scale.backward(leaf.grad))
    optimizer.step()
