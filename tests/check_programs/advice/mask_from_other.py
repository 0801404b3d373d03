# expect: GI101
# advice: h = torch.where(mask, other, h)
# never: torch.stack
import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(3, 4), nn.Linear(3, 4)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.05)
x, y, mask = torch.randn(8, 3), torch.rand(8, 4), torch.rand(8, 4) > 0.5
losses = []
for _ in range(30):
    h, other = first(x).tanh(), second(x)
    h[mask] = other[mask]  # -
    h = torch.where(mask, other, h)  # +
    loss = (h - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
