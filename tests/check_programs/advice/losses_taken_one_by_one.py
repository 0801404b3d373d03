# expect: GI401
# advice: Both losses are known before losses_taken_one_by_one.py:22: call backward() once on the sum of both
# advice: instead of both calls.
# lines: freed=22 backward=23
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []


def error(out, column):
    return (out[:, column] - x[:, column]).square().mean()


for _ in range(20):
    out = model(x)
    optimizer.zero_grad()
    both = iter((error(out, 0), error(out, 1)))
    next(both).backward()  # -
    next(both).backward()  # -
    (next(both) + next(both)).backward()  # +
    optimizer.step()
    losses.append((error(out, 0) + error(out, 1)).item())
print("loss", losses[0], losses[-1])
