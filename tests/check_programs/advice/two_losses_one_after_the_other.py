# expect: GI401
# advice: Both losses are known before two_losses_one_after_the_other.py:17: call (first + second).backward() once
# advice: instead of both calls.
# lines: backward=18 freed=17 new=15 old=13
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    out = model(x)
    first = (out[:, 0] - x[:, 0]).square().mean()
    second = (out[:, 1] - x[:, 1]).square().mean()
    optimizer.zero_grad()
    first.backward()  # -
    second.backward()  # -
    (first + second).backward()  # +
    optimizer.step()
    losses.append((first + second).item())
print("loss", losses[0], losses[-1])
