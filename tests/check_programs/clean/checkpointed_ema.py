"""Checkpointed blocks, of both kinds, autocast, and a moving average of the weights."""

import copy

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
model = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)) for _ in range(2)])
average = copy.deepcopy(model)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = checkpoint(model[0], torch.randn(2, 4, requires_grad=True), use_reentrant=True)
        h = checkpoint(model[1], h, use_reentrant=False)
    loss = h.float().pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, new in zip(average.parameters(), model.parameters(), strict=True):
            kept.lerp_(new, 0.1)
    print(loss.item().hex())
