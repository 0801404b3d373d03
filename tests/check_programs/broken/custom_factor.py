"""A factor is forgotten in a hand-written backward."""
# options: --gradcheck

import torch
from torch import nn


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return scale * x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x**2 * ctx.scale, None


torch.manual_seed(0)
layer = nn.Linear(16, 32)
loss = Cube.apply(layer(torch.randn(8, 16)), 0.5).sum()
loss.backward()
# expect: GI201 applied=23 defined=16
