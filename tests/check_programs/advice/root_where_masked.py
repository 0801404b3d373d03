# expect: GI501
# options: --steps 1
# advice: At root_where_masked.py:16, clamp its input: x.clamp(min=1e-8). Or mask its input with harmless values:
# advice: torch.where(mask, x, 1.0).
# lines: backward=20 made=16
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
x, y = torch.randn(8, 3), torch.rand(8, 4)
losses = []
for _ in range(30):
    h = layer(x)
    root = torch.where(h > 0, h.sqrt(), 0.0)  # -
    root = torch.where(h > 0, h.clamp(min=1e-8).sqrt(), 0.0)  # +
    loss = (root - y).square().mean() + (h - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
