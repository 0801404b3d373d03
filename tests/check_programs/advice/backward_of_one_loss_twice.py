# expect: GI401
# advice: Compute backward_of_one_loss_twice.py:13, and what it reads, again before backward_of_one_loss_twice.py:19,
# advice: or call backward once on the sum of all losses of that graph.
# lines: backward=19 freed=15 made=13
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss = (model(x) - x[:, :1]).square().mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
