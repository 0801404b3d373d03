# expect: GI502
# advice: At deviation_of_one.py:15, pass correction=0, or compute it over more than one value.
# lines: backward=19 made=15
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(4, 3)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
x = torch.randn(25, 4)
losses = []
for _ in range(3):
    for batch in x.split(8):
        h = layer(batch)
        spread = h.std(0)  # -
        spread = h.std(0, correction=0)  # +
        loss = (h - batch[:, :3]).square().mean() + 0.01 * (spread - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    losses.append((layer(x) - x[:, :3]).square().mean().item())
print("loss", losses[0], losses[-1])
