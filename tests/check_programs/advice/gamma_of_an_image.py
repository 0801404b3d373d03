# expect: GI501
# advice: At gamma_of_an_image.py:14, keep its input away from 0: x.clamp(min=1e-8), if it is never negative.
# lines: backward=18 made=14
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Conv2d(3, 3, 3, padding=1)
optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
x = torch.rand(4, 3, 8, 8)
losses = []
for _ in range(30):
    image = torch.relu(layer(x))
    shown = image ** (1 / 2.2)  # -
    shown = image.clamp(min=1e-8) ** (1 / 2.2)  # +
    loss = (shown - x).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
