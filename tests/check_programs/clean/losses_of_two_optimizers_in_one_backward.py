"""A head on detached features beside the loss of the trunk, both in one backward; two optimizers step after it."""

import torch
from torch import nn

torch.manual_seed(0)
trunk, head, probe = nn.Linear(6, 8), nn.Linear(8, 1), nn.Linear(8, 2)
optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=0.05)
optimizer_probe = torch.optim.SGD(probe.parameters(), lr=0.05)
for step in range(12):
    x = torch.randn(16, 6)
    features = trunk(x).tanh()
    loss = (head(features) - x[:, :1]).square().mean()
    probing = nn.functional.cross_entropy(probe(features.detach()), (x[:, 1] > 0).long())
    optimizer.zero_grad()
    if step % 2 == 0:
        optimizer_probe.zero_grad()  # steps at every second backward only
    (loss + probing).backward()
    optimizer.step()
    if step % 2 == 1:
        optimizer_probe.step()
print(loss.item(), probing.item())
