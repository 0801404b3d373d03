"""A reentrant checkpoint whose only tensor input is data: it builds no graph, and torch only warns."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
block, head = nn.Sequential(nn.Linear(4, 4), nn.GELU()), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*block.parameters(), *head.parameters()])
for _ in range(2):
    h = checkpoint(block, torch.randn(3, 4), use_reentrant=True)
    loss = head(h).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI301 read=11 detached=11 used=12 backward=14 step=15
