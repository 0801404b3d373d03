"""Backward calls an in-place, no_grad helper for speed."""
# options: --gradcheck

import torch


@torch.no_grad()
def slope_of_tanh(y):
    return 1 - y * y


class Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * slope_of_tanh(y)


x = torch.linspace(-1, 1, 5, requires_grad=True)
loss = Tanh.apply(x).sum()
loss.backward()
# expect: GI202 applied=26 defined=20
