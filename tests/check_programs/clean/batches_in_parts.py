"""An endless generator and an iterator that is read in parts are made before the loop over epochs."""

from itertools import islice

import torch
from torch import nn


def endless():
    while True:
        yield torch.randn(16, 6)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
batches, rest = endless(), iter(torch.randn(400, 6).split(16))
for _ in range(3):
    for x in islice(batches, 3):
        loss = (model(x) - x[:, :1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for number, x in enumerate(rest):
        loss = (model(x) - x[:, :1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number == 4:
            break
