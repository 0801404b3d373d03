"""A result is kept as an attribute of ctx: backward is right, and its own derivative is not."""
# options: --gradcheck

import torch


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.result = x.exp()
        return ctx.result.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.result


x = torch.linspace(-1, 1, 5, requires_grad=True)
loss = Exp.apply(x).sum()
loss.backward()
# expect: GI202 applied=19 defined=14
