"""Calls whose result is not needed: in-place forms, timing, shapes that must be possible, assigned results."""

import time

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model, target = nn.Linear(4, 4), nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
warm_up = model(torch.ones(2, 4))
began = time.perf_counter()
for _ in range(3):
    torch.relu(warm_up)
    F.softmax(warm_up, dim=-1)
assert time.perf_counter() >= began
for _ in range(3):
    optimizer.zero_grad()
    x = torch.ones(3, 4)
    x.add(1)
    hidden = model(x)
    hidden.mul_(2.0)
    F.leaky_relu(hidden, 0.1, True)
    wanted = target(x)
    wanted = wanted.detach()
    _ = hidden.detach()
    [hidden.view(12) for _ in range(1)]
    loss = (hidden - wanted).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
