"""NumPy beside training: copies of a reused array, logs, labels, a write after backward, a write that is undone."""

import copy

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
model, head = nn.Linear(4, 8), nn.Linear(8, 1)
teacher = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
reused, replay = np.zeros((8, 4), dtype=np.float32), np.zeros((32, 4), dtype=np.float32)
memory = torch.from_numpy(replay)
for step in range(4):
    reused[:] = rng.standard_normal((8, 4))
    x = torch.from_numpy(reused).clone()
    replay[8 * step : 8 * step + 8] = reused
    y = torch.from_numpy(np.sign(reused.sum(1, keepdims=True)))
    h = model(x)
    sampled = model(memory[: 8 * step + 8])  # rows behind it are written later
    if step < 3:
        replay[8 * step + 8 : 8 * step + 16] = 1
    loss = (head(h) - y).square().mean() + (h - teacher(x)).square().mean() + sampled.square().mean()
    shown = h.detach().numpy()
    log = shown.copy() / 2
    shown *= 2
    shown /= 2
    reused[:] = 0
    optimizer.zero_grad()
    loss.backward()
    shown[:] = 0
    optimizer.step()
    print(f"{loss.item():.4f} {abs(log).max() > 0}")
