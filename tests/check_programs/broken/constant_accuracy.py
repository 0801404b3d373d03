"""The share of wrong predictions is part of the loss."""

import torch
from torch import nn


def objective(logits, y):
    wrong = (logits.argmax(1) != y).float().mean()
    return nn.functional.cross_entropy(logits, y) + 0.5 * wrong


torch.manual_seed(0)
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    loss = objective(model(torch.randn(8, 4)), torch.randint(3, (8,)))
    loss.backward()
    optimizer.step()
# expect: GI306 detached=8 used=9 backward=18
