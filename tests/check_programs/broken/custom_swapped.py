"""Two gradients of the same shape are returned in the wrong order."""
# options: --gradcheck

import torch


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * a, grad * b


torch.manual_seed(0)
a, b = torch.randn(6, requires_grad=True), torch.randn(6, requires_grad=True)
loss = Product.apply(a, b).sum()
loss.backward()
# expect: GI201 applied=21 defined=14
