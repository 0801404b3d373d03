# expect: GI103
# advice: Compute with a new tensor instead of writing to h at written_through_data.py:16.
# lines: backward=20 saved=14 saved=15 written=16
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 4)
scale = nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([*layer.parameters(), scale], lr=0.05)
x, y = torch.randn(8, 3), torch.rand(8, 4)
losses = []
for _ in range(30):
    h = torch.tanh(layer(x))
    out = h * scale
    h.data.clamp_(min=0.1)  # -
    h = h.clamp(min=0.1)  # +
    loss = (out + h - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
