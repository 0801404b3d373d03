"""Twelve sigmoid layers: the gradient that reaches the first is far less than a millionth of the one at the last.

Try: gradinspect grads samples/vanishing.py
"""

import torch
from torch import nn

torch.manual_seed(0)
layers = [nn.Sequential(nn.Linear(16, 16), nn.Sigmoid()) for _ in range(12)]
model = nn.Sequential(*layers, nn.Linear(16, 1))

loss = model(torch.randn(64, 16)).square().mean()
loss.backward()
print(f"loss {loss.item():.4f}")
