# expect: GI501
# advice: At hyperbolic_distance.py:16, clamp its input: x.clamp(min=1 + 1e-6). Or mask its input with harmless
# advice: values: torch.where(mask, x, 1.0).
# lines: backward=20 made=16
import torch
from torch import nn

torch.manual_seed(0)
points = nn.Embedding(6, 2)
optimizer = torch.optim.Adam(points.parameters(), lr=0.01)
first, second = torch.tensor([0, 1, 2, 3, 4]), torch.tensor([1, 2, 2, 4, 5])
wanted = torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0])
losses = []
for _ in range(30):
    gap = (points(first) - points(second)).square().sum(1)
    distance = torch.acosh(1 + 2 * gap)  # -
    distance = torch.acosh((1 + 2 * gap).clamp(min=1 + 1e-6))  # +
    loss = (distance - wanted).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
