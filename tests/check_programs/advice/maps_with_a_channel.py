# expect: GI001
# advice: Labels have no channels: at maps_with_a_channel.py:14, pass y.squeeze(1).
"""A label map has one channel, as images have."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1))
optimizer, history = torch.optim.Adam(model.parameters(), lr=0.02), []
x = torch.randn(8, 1, 8, 8)
y = (x > -0.5).long() + (x > 0.5).long()
for _ in range(20):
    loss = nn.functional.cross_entropy(model(x), y)  # -
    loss = nn.functional.cross_entropy(model(x), y.squeeze(1))  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
