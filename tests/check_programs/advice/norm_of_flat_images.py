# expect: GI001
# advice: This norm is one for 4D inputs, and gets 2D: use the BatchNorm of the layers before it, or flatten after it.
"""Images are flattened before they are normalized."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.BatchNorm2d(4), nn.Linear(4 * 36, 2))  # -
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 36, 2))  # +
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x, history = torch.randn(32, 1, 8, 8), []
y = (x.mean((1, 2, 3)) > 0).long()
for _ in range(20):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
