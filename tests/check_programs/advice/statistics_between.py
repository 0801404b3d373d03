# expect: GI103
# advice: Compute statistics_between.py:15 after statistics_between.py:16, which changes the running statistics that
# advice: it reads. Or call the module in eval mode at statistics_between.py:16.
# lines: backward=25 saved=15 written=16
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []


def both(batch):
    steady = model.eval()(batch)  # -
    noisy = model.train()(batch)
    steady = model.eval()(batch)  # +
    return steady, noisy


for _ in range(30):
    steady, noisy = both(x)
    loss = (noisy - x[:, :1]).square().mean() + 0.1 * (steady - noisy.detach()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
