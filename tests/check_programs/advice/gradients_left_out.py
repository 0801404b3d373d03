# expect: GI001
# advice: Let backward return 2 values, one for each argument of forward: None for those without a gradient.
import torch
from torch import nn


class Scale(torch.autograd.Function):
    """Multiplies by a number."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.factor  # -
        return gradient * ctx.factor, None  # +


torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
history = []
for _ in range(30):
    loss = (Scale.apply(net(x), 2.0) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
