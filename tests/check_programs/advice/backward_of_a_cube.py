# expect: GI201
# options: --gradcheck
# advice: Correct the gradient of x at backward_of_a_cube.py:16. If this is intentional, skip it with --skip GI201.
# lines: applied=27 defined=16 returned=18
import torch
from torch import nn


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * 2 * x**2  # -
        return gradient * 3 * x**2  # +


torch.manual_seed(0)
layer = nn.Linear(4, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.02)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    loss = (Cube.apply(layer(x)) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
