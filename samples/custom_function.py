"""A custom autograd.Function is one node: it shows what you saved for backward and what you put on `ctx`.

Try: gradinspect saved samples/custom_function.py
"""

import torch
from torch.autograd import Function


class LeakyClamp(Function):
    """Clamp that lets a small gradient through outside its range."""

    @staticmethod
    def forward(ctx, x, low, high, leak):
        ctx.save_for_backward((x >= low) & (x <= high))
        ctx.leak = leak
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, grad):
        (inside,) = ctx.saved_tensors
        return torch.where(inside, grad, ctx.leak * grad), None, None, None


x = torch.linspace(-2, 2, 5, requires_grad=True)
y = LeakyClamp.apply(x, -1.0, 1.0, 0.1)
y.sum().backward()

print("output:  ", y.tolist())
print("gradient:", [round(value, 2) for value in x.grad.tolist()])
