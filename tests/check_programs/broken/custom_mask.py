"""A leaky activation whose backward forgets the slope on the left side."""
# options: --gradcheck

import torch
from torch import nn


class Leaky(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.where(x > 0, x, 0.1 * x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return grad * (output > 0)


torch.manual_seed(0)
activation = Leaky.apply
layer = nn.Linear(4, 8)
loss = activation(layer(torch.randn(4, 4))).pow(2).mean()
loss.backward()
# expect: GI201 applied=26 defined=18
