# expect: GI203
# why: Reversal is an nn.Module with a method backward
# advice: Move it into a torch.autograd.Function: static methods forward(ctx, x) and backward(ctx, grad)
# lines: defined=26
import torch
from torch import nn

torch.manual_seed(0)


class Reversed(torch.autograd.Function):  # +
    @staticmethod  # +
    def forward(ctx, x):  # +
        return x.view_as(x)  # +

    @staticmethod  # +
    def backward(ctx, grad):  # +
        return -0.1 * grad  # +


class Reversal(nn.Module):
    def forward(self, x):
        return x.view_as(x)  # -
        return Reversed.apply(x)  # +

    def backward(self, grad):  # -
        return -0.1 * grad  # -


body, label, domain = nn.Linear(5, 8), nn.Linear(8, 1), nn.Linear(8, 1)
adversary = nn.Sequential(Reversal(), domain)
optimizer = torch.optim.Adam([p for part in (body, label, domain) for p in part.parameters()], lr=0.02)
x, origin, history = torch.randn(60, 5), (torch.arange(60) % 2).float()[:, None], []
y = (x[:, :1] > 0).float()
for _ in range(12):
    seen = torch.tanh(body(x))
    loss = nn.functional.binary_cross_entropy_with_logits(label(seen), y)
    total = loss + nn.functional.binary_cross_entropy_with_logits(adversary(seen), origin)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
