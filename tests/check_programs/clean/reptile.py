"""Reptile: a copy learns each task, and the meta gradient is the difference of weights, written to .grad by hand."""

import copy
import math

import torch
from torch import nn

torch.manual_seed(0)
meta = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
meta_optimizer = torch.optim.Adam(meta.parameters(), lr=1e-2)


def adapt(model, phase, steps=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        x = torch.rand(10, 1) * 10 - 5
        loss = nn.functional.mse_loss(model(x), torch.sin(x + phase))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


for _ in range(3):
    fast = copy.deepcopy(meta)
    final = adapt(fast, torch.rand(1).item() * math.pi)
    meta_optimizer.zero_grad()
    for slow_p, fast_p in zip(meta.parameters(), fast.parameters(), strict=True):
        slow_p.grad = slow_p.data - fast_p.data
    meta_optimizer.step()
    print(final.hex(), sum(p.abs().sum() for p in meta.parameters()).item().hex())
