# expect: GI401
# advice: All losses are known before losses_called_by_one_name.py:22, and share a part: add them up in the loop, and
# advice: call backward() once on the sum, after it.
# lines: backward=22 freed=22 new=15 old=19
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
    for loss in (error(out, 0), error(out, 1)):  # -
        loss.backward()  # -
    loss = sum((error(out, 0), error(out, 1)))  # +
    loss.backward()  # +
    optimizer.step()
    losses.append((error(out, 0) + error(out, 1)).item())
print("loss", losses[0], losses[-1])
