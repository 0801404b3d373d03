# expect: GI101
# advice: Write 'h = h.masked_scatter(mask, known)' at values_put_where_masked.py:16, which makes a new tensor.
# lines: backward=20 saved=15 written=16
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
x, y = torch.randn(8, 3), torch.rand(8, 4)
mask = torch.arange(8).unsqueeze(1).expand(8, 4) % 2 == 0
known = torch.full((16,), 0.5)
losses = []
for _ in range(30):
    h = torch.sigmoid(layer(x))
    h[mask] = known  # -
    h = h.masked_scatter(mask, known)  # +
    loss = (h - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
