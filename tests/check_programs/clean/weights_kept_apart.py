"""State dicts and averages that are copies, or that are used before the next step."""

import copy
import io

import torch
from torch import nn

torch.manual_seed(0)
model, target = nn.Linear(4, 2), nn.Linear(4, 2)
average = copy.deepcopy(model)
target.load_state_dict(model.state_dict())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best, least, state = None, float("inf"), model.state_dict()
names = list(state)
for step in range(6):
    loss = (model(torch.randn(8, 4)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, one in zip(average.parameters(), model.parameters(), strict=True):
            kept.mul_(0.9).add_(one, alpha=0.1)
            kept.lerp_(one, 0.1)
        for one in model.parameters():
            one.add_(one.data, alpha=0.0)
    if step % 2 == 0:
        state = model.state_dict()
        target.load_state_dict(state)
    if loss.item() < least:
        least, checkpoint = loss.item(), {"model": model.state_dict(), "step": step}
        torch.save(checkpoint, io.BytesIO())
        best = copy.deepcopy(model.state_dict())
model.load_state_dict(best)
