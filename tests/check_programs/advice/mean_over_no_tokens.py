# expect: GI502
# advice: At mean_over_no_tokens.py:17, keep the divisor away from 0: torch.where(divisor == 0, 1.0, divisor), or
# advice: x.clamp(min=1e-8).
# lines: backward=21 first=17 made=19
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
x, y = torch.randn(6, 5, 4), torch.rand(6, 4)
mask = torch.arange(5) < torch.tensor([5, 3, 0, 2, 4, 1]).unsqueeze(1)
losses = []
for _ in range(30):
    h = layer(x) * mask.unsqueeze(2)
    count = mask.sum(1, keepdim=True)
    pooled = h.sum(1) / count  # -
    pooled = h.sum(1) / torch.where(count == 0, 1.0, count)  # +
    loss = (pooled - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
