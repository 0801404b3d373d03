# expect: GI397
# advice: At batches_for_one_epoch.py:24, make batches a list, or move that line into the loop of
# advice: batches_for_one_epoch.py:26.
"""A zip is given to a function that trains for an epoch."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer, history = torch.optim.Adam(model.parameters(), lr=0.01), []


def train(batches):
    for _, (x, y) in enumerate(batches):
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())


x = torch.randn(120, 6)
batches = zip(x.split(20), x[:, :1].split(20), strict=True)  # -
batches = list(zip(x.split(20), x[:, :1].split(20), strict=True))  # +
for _ in range(4):
    train(batches)
print("loss", history[0], history[-1])
