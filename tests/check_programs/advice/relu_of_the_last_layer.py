# expect: GI322
# advice: Leave out the last relu that relu_of_the_last_layer.py:12 makes, or scale the targets into its range.
"""A loop puts a relu behind each layer, also behind the last."""

import torch
from torch import nn

torch.manual_seed(0)
layers, history = [], []
for features, wanted in ((6, 16), (16, 16), (16, 1)):
    layers.append(nn.Linear(features, wanted))
    layers.append(nn.ReLU())
layers.pop()  # +
model = nn.Sequential(*layers)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(64, 6)
for _ in range(20):
    loss = nn.functional.mse_loss(model(x), x[:, :1] - 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
