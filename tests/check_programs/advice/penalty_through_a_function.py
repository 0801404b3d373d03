# expect: GI202
# options: --gradcheck
# advice: At penalty_through_a_function.py:18, compute with torch operators on inputs or outputs from
# advice: ctx.saved_tensors, or decorate backward with once_differentiable to rule out a second derivative.
# lines: applied=29 defined=18 returned=19
import torch
from torch import nn


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.slope = 3 * x.detach() ** 2  # -
        ctx.save_for_backward(x)  # +
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.slope  # -
        (x,) = ctx.saved_tensors  # +
        return gradient * 3 * x**2  # +


torch.manual_seed(0)
layer = nn.Linear(4, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.02)
x, losses = torch.randn(32, 4).requires_grad_(), []
for _ in range(20):
    out = Cube.apply(layer(x))
    (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    loss = (out - x.detach()[:, :1]).square().mean() + 0.01 * slope.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
