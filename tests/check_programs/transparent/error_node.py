"""A node that raises: what once_differentiable leaves behind where a graph of backward is asked for."""

import torch
from torch.autograd.function import once_differentiable


class Double(torch.autograd.Function):
    """Twice its input."""

    @staticmethod
    def forward(ctx, value):
        ctx.name = "kept under a name that nodes have too"
        return value * 2

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        return gradient * 2


x = torch.ones(3, requires_grad=True)
(gradient,) = torch.autograd.grad((Double.apply(x) ** 2).sum(), x, create_graph=True)
print(type(gradient.grad_fn).__name__)
try:
    gradient.sum().backward()
except RuntimeError as error:
    print(error)
