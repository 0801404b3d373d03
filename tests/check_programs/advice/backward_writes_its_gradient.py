# expect: GI201
# options: --gradcheck
# advice: At backward_writes_its_gradient.py:17, make a new tensor instead, such as by torch.where() or masked_fill(),
# advice: or clone() the gradient before writing.
# lines: applied=29 defined=17 returned=20
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
        gradient.mul_(3 * x**2)  # -
        return gradient  # -
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
