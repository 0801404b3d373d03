# expect: GI001
# advice: A sample holds a datetime.date: return a number, a string or a tensor for it, or nothing.
"""Each sample has the day on which it was measured."""

import datetime

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
day = datetime.date(2024, 1, 1)
samples = [(one, one.sum(), day) for one in torch.randn(64, 6)]  # -
samples = [(one, one.sum(), day.isoformat()) for one in torch.randn(64, 6)]  # +
model, history = nn.Linear(6, 1), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for x, y, _ in DataLoader(samples, batch_size=8):
    loss = nn.functional.mse_loss(model(x).squeeze(1), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
