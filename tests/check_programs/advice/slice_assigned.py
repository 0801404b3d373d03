# expect: GI101
# advice: Write to a copy: add 'out = out.clone()' before slice_assigned.py:16.
# never: torch.stack
# lines: backward=19 saved=14 written=16
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(3, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
x, y = torch.randn(8, 3), torch.rand(8, 4)
losses = []
for _ in range(30):
    out = torch.sigmoid(layer(x))
    out = out.clone()  # +
    out[:, 0] = out[:, 0] * 2
    loss = (out - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
