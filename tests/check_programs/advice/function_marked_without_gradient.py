# expect: GI301
# advice: Does the forward of the Function at function_marked_without_gradient.py:12 call mark_non_differentiable(),
# advice: or compute without its input?
# lines: backward=28 detached=12 read=26 step=29 used=26
import torch
from torch import nn


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = x.clamp(-1, 1)
        ctx.mark_non_differentiable(out)  # -
        return out

    @staticmethod
    def backward(ctx, gradient):
        return gradient


torch.manual_seed(0)
encoder, head = nn.Linear(8, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
x, losses = torch.randn(32, 8), []
for _ in range(20):
    loss = (head(Clip.apply(encoder(x))) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
