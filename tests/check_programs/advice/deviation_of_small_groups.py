# expect: GI501
# advice: At deviation_of_small_groups.py:18, pass correction=0, or compute it over more than one value. Or mask its
# advice: input with harmless values: torch.where(mask, x, 1.0).
# lines: backward=23 made=18
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(4, 3)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
x, group = torch.randn(12, 4), torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2])
losses = []
for _ in range(20):
    h = layer(x)
    penalty = 0.0
    for number in range(3):
        member = h[group == number]
        spread = member.std(0)  # -
        spread = member.std(0, correction=0)  # +
        penalty = penalty + torch.where(torch.tensor(len(member) > 1), spread, 0.0).sum()
    loss = (h - x[:, :3]).square().mean() + 0.01 * penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
