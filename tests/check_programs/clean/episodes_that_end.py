"""Targets of episodes that end, of a task without an end, and large ones that a layer comes to."""

import torch
from torch import nn

torch.manual_seed(0)
values, goal = nn.Linear(4, 2), nn.Linear(1, 1)
optimizer = torch.optim.Adam(values.parameters(), lr=0.01)
for _ in range(8):
    state, after, reward = torch.randn(32, 4), torch.randn(32, 4), torch.ones(32)
    ended = torch.rand(32) < 0.1
    with torch.no_grad():
        best = values(after).max(1)[0]
        episodes = reward + 0.9 * torch.where(ended, torch.zeros(32), best)
        endless = reward + 0.9 * best
    chosen = values(state)
    loss = nn.functional.mse_loss(chosen[:, 0], episodes) + nn.functional.mse_loss(chosen[:, 1], endless)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
x = torch.rand(64, 1)
optimizer = torch.optim.SGD(goal.parameters(), lr=0.1)
for _ in range(40):
    loss = nn.functional.mse_loss(goal(x), 5_000 + 100 * x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
