# expect: GI001
# advice: Count classes from 0, or raise num_classes at classes_from_one.py:13: of n classes, the last is n - 1.
"""The classes of the file begin with 1."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4), nn.Softmax(dim=1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
x, history = torch.randn(48, 6), []
y = x[:, :4].argmax(1) + 1
target = nn.functional.one_hot(y, 4).float()  # -
target = nn.functional.one_hot(y - 1, 4).float()  # +
for _ in range(20):
    loss = (model(x) - target).square().sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
