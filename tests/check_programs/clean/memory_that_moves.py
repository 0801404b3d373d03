"""A target network that follows by its data, weights that are swapped for an evaluation and back, a flat buffer."""

import torch
from torch import nn

torch.manual_seed(0)
online, target = nn.Linear(4, 2), nn.Linear(4, 2)
for mine, theirs in zip(target.parameters(), online.parameters(), strict=True):
    mine.data = theirs.data.clone()
flat = torch.cat([p.detach().flatten() for p in online.parameters()])
start = 0
for p in online.parameters():
    p.data = flat[start : start + p.numel()].view_as(p)
    start += p.numel()
optimizer = torch.optim.SGD(online.parameters(), lr=0.1, momentum=0.9)
for _ in range(4):
    optimizer.zero_grad()
    with torch.no_grad():
        wanted = target(torch.ones(3, 4))
    loss = (online(torch.ones(3, 4)) - 0.5 * wanted - 1).square().mean()
    loss.backward()
    optimizer.step()
    for mine, theirs in zip(target.parameters(), online.parameters(), strict=True):
        kept = mine.data
        mine.data = theirs.data
        print(target(torch.ones(1, 4)).sum().item())
        mine.data = kept.lerp(theirs.data, 0.1)
    print(loss.item().hex())
