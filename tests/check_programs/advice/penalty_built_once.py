# expect: GI401
# advice: Compute penalty_built_once.py:12 again
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(16, 3), torch.randn(16, 1)
losses = []
if True:
    penalty = model.weight.exp().sum()
for _ in range(20):
    penalty = model.weight.exp().sum()  # +
    loss = (model(x) - y).square().mean() + 0.01 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
