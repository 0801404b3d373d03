"""Truncated BPTT that keeps a window of states: a slice of the list, a deque of some length, a ring."""

from collections import deque

import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.GRUCell(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
states, latest, ring = [torch.zeros(2, 8)], deque(maxlen=4), [None] * 4
for step in range(18):
    states.append(cell(torch.randn(2, 4), states[-1]))
    output = head(states[-1])
    latest.append(output.tanh())
    ring[step % 4] = output.relu()
    if step % 3 == 2:
        loss = sum(head(state).square().mean() for state in states[-3:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        states = [state.detach() if place == 3 else state for place, state in enumerate(states)][-2:]
        states[-1] = states[-1].detach()
        print(f"{loss.item():.4f}")
