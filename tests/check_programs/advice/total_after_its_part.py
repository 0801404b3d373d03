# expect: GI401
# advice: total contains loss: call total.backward() only, without loss.backward() before it.
# lines: backward=16 freed=14 new=15 old=12
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()  # -
    total = loss + 0.001 * sum(p.square().sum() for p in model.parameters())
    total.backward()
    optimizer.step()
    losses.append(total.item())
print("loss", losses[0], losses[-1])
