"""A multi-layer perceptron and one training step: the graph to learn reading on.

Try: gradinspect trace samples/mlp.py
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(20, 64),
    nn.ReLU(),
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Linear(64, 4),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
features = torch.randn(32, 20)
labels = torch.randint(4, (32,))

loss = F.cross_entropy(model(features), labels)
optimizer.zero_grad()
loss.backward()
optimizer.step()

print(f"loss {loss.item():.4f}")
