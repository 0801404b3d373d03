# expect: GI001
# advice: At numbers_concatenated.py:14, write torch.stack() instead of torch.cat(): these are single numbers.
"""The losses of several batches are numbers."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 1)
optimizer, history = torch.optim.SGD(model.parameters(), lr=0.1), []
batches = torch.randn(4, 16, 5)
for _ in range(20):
    losses = [(model(x).squeeze(1) - x.sum(1)).square().mean() for x in batches]
    loss = torch.cat(losses).mean()  # -
    loss = torch.stack(losses).mean()  # +
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
