"""Fine-tuning begins with a new optimizer, and the scheduler goes on with the old one."""

import torch
from torch import nn

body, head = nn.Linear(6, 8), nn.Linear(8, 2)


def epoch(optimizer):
    for _ in range(3):
        loss = head(body(torch.randn(4, 6)).relu()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


warm = torch.optim.Adam([*body.parameters(), *head.parameters()], 1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(warm, 10)
for _ in range(2):
    epoch(warm)
    scheduler.step()
full = torch.optim.Adam([*body.parameters(), *head.parameters()], 1e-3)
for _ in range(4):
    epoch(full)
    scheduler.step()

# expect: GI382 optimizer=17 replaced=22 scheduler=25
