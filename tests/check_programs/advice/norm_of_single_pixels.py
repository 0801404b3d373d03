# expect: GI001
# advice: An instance norm needs several positions in each channel: remove it where images have become 1 by 1.
"""The last convolution leaves one pixel."""

import torch
from torch import nn

torch.manual_seed(0)
layers = [nn.Conv2d(1, 8, 4, stride=4), nn.InstanceNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 2)]
layers.append(nn.InstanceNorm2d(8))  # -
model = nn.Sequential(*layers, nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, history = torch.randn(32, 1, 8, 8), []
y = (x[:, 0, 0, 0] > x[:, 0, 7, 7]).long()
for _ in range(20):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
