# expect: GI607
# advice: Start from smaller weights, as nn.init.xavier_uniform_() makes them.
"""Weights are drawn with a deviation of 3."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 4))
for layer in model[::2]:
    nn.init.normal_(layer.weight, 0.0, 3.0)  # -
    nn.init.xavier_uniform_(layer.weight)  # +
optimizer, history = torch.optim.SGD(model.parameters(), lr=0.05), []
x = torch.randn(64, 32)
y = x[:, :4].argmax(1)
for _ in range(20):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
