"""Custom Functions that are right: a swish, a straight-through estimator, gradient reversal, one derived only once."""
# options: --gradcheck

import torch
from torch import nn
from torch.autograd.function import once_differentiable


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * s * (1 + x * (1 - s))


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        return torch.round(x * levels) / levels

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -0.5 * grad


class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x > 0)


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, table, rows):
        ctx.save_for_backward(rows)
        ctx.length = table.shape[0]
        return table[rows]

    @staticmethod
    def backward(ctx, grad):
        (rows,) = ctx.saved_tensors
        return grad.new_zeros(ctx.length, grad.shape[1]).index_add(0, rows, grad), None


torch.manual_seed(0)
table = nn.Parameter(torch.randn(30, 16))
model = nn.Linear(16, 8)
for _ in range(2):
    h = Gather.apply(table, torch.randint(30, (12,)))
    h = Relu.apply(Swish.apply(model(h)))
    loss = (Reverse.apply(Round.apply(h, 4)) * 2).pow(2).mean()
    loss.backward()
    print(loss.item().hex(), torch.rand(1).item().hex())
