# expect: GI001
# advice: Give the weight 5 entries: bincount() takes minlength=5, to count classes that do not occur, too.
"""No example has the last class."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(9, 16), nn.ReLU(), nn.Linear(16, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x, history = torch.randn(60, 9), []
y = x[:, :4].argmax(1)
counts = torch.bincount(y)  # -
counts = torch.bincount(y, minlength=5)  # +
weight = len(y) / counts.clamp(min=1)
for _ in range(20):
    loss = nn.functional.cross_entropy(model(x), y, weight)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
