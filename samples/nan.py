"""A loss that is finite with a gradient that is NaN: the distance of a point to itself.

Try: gradinspect check samples/nan.py
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
points = torch.randn(6, 4)

embedded = model(points)
differences = embedded[:, None] - embedded[None]
distances = differences.square().sum(dim=-1).sqrt()
loss = (distances - 1).square().mean()
loss.backward()

print(f"loss {loss.item():.4f}")
print("NaN in the gradient:", model[0].weight.grad.isnan().any().item())
