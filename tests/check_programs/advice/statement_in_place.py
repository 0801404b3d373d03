# expect: GI101
# advice: Write 'h = h.clamp(min=0.1)' at statement_in_place.py:14, which makes a new tensor.
# lines: backward=18 saved=13 written=14
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
x, y = torch.randn(8, 3), torch.rand(8, 4)
losses = []
for _ in range(30):
    h = torch.sigmoid(layer(x))
    h.clamp_(min=0.1)  # -
    h = h.clamp(min=0.1)  # +
    loss = (h - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
