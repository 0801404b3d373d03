"""A momentum encoder in train mode, with the batch statistics of its own view, and one whose buffers follow."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
online = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 4))
momentum = copy.deepcopy(online).requires_grad_(False)
average = copy.deepcopy(online).requires_grad_(False).eval()
predictor = nn.Linear(4, 4)
optimizer = torch.optim.SGD([*online.parameters(), *predictor.parameters()], lr=0.05)
for _ in range(20):
    x = torch.randn(16, 6) + 1
    with torch.no_grad():
        goal = momentum(x + 0.1 * torch.randn_like(x))
    loss = 2 - 2 * F.cosine_similarity(predictor(online(x)), goal, dim=1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, p in zip(momentum.parameters(), online.parameters(), strict=True):
            kept.lerp_(p, 0.1)
        state = online.state_dict()
        for name, kept in average.state_dict().items():
            kept.copy_(kept.lerp(state[name], 0.1) if kept.is_floating_point() else state[name])
        print(float(average(x).square().mean()))
