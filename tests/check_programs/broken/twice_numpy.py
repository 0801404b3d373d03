"""The backward goes through NumPy, so it has no derivative of its own; the mask in it is fine."""
# options: --gradcheck

import torch


class Softplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.log1p(torch.exp(x))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        slope = 1 / (1 + torch.exp(-x).detach().numpy())
        return grad * torch.from_numpy(slope)


x = torch.linspace(-1, 1, 5, requires_grad=True)
loss = Softplus.apply(x).sum()
loss.backward()
# expect: GI202 applied=21 defined=14
