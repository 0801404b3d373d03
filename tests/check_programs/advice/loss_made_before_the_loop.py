# expect: GI401
# advice: Compute loss_made_before_the_loop.py:12, and what it reads, again before loss_made_before_the_loop.py:16,
# advice: inside the loop: a graph can be used for one backward.
# lines: backward=16 freed=16 made=12
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
loss = (model(x) - x[:, :1]).square().mean()  # -
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
