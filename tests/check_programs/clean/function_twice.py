"""A custom softplus whose backward is made of differentiable operations, used under a gradient penalty."""

import torch
from torch import nn

torch.manual_seed(0)


class SoftPlus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.sigmoid(x)


first, second = nn.Linear(2, 10), nn.Linear(10, 1)
optimizer = torch.optim.RMSprop([*first.parameters(), *second.parameters()], lr=1e-3)
for _ in range(3):
    x = torch.randn(16, 2, requires_grad=True)
    noise = torch.randn(16, 2) * 0.1
    energy = second(SoftPlus.apply(first(x + noise)))
    (score,) = torch.autograd.grad(-energy.sum(), x, create_graph=True)
    loss = (score + noise / 0.01).square().sum(1).mean() * 1e-2 + 1e-3 * energy.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
