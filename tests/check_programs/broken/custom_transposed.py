"""A layer by hand: the bias gets the gradient of one row, not the sum of all."""
# options: --gradcheck

import torch
from torch import nn


class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return x @ weight.t() + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.t() @ x, grad[0]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(20, 10) / 3)
        self.bias = nn.Parameter(torch.zeros(20))

    def forward(self, x):
        return Affine.apply(x, self.weight, self.bias)


torch.manual_seed(0)
loss = Layer()(torch.randn(64, 10)).pow(2).mean()
loss.backward()
# expect: GI201 applied=27 defined=15
