# expect: GI201
# options: --gradcheck
# why: writes into the gradient
# advice: clone()
# never: is correct
import torch
from torch import nn

torch.manual_seed(0)


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        grad[x < 0] = 0  # -
        return grad  # -
        return grad.masked_fill(x < 0, 0)  # +


layer, head = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.02)
x, y = torch.randn(16, 3), torch.randn(16, 1)
losses = []
for _ in range(20):
    loss = (head(Clip.apply(layer(x))) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
