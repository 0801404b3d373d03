"""What backward computes with is detached."""
# options: --gradcheck

import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x.detach() * grad


x = torch.linspace(-1, 1, 5, requires_grad=True)
(slope,) = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
loss = slope.pow(2).sum() + x.sum()
loss.backward()
# expect: GI202 applied=20 defined=14
