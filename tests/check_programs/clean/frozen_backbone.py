"""A frozen backbone in eval mode, a new head; the optimizer holds all parameters."""

import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU()).eval().requires_grad_(False)
head = nn.Linear(8, 3)
optimizer = torch.optim.AdamW([*backbone.parameters(), *head.parameters()])
for _ in range(3):
    with torch.no_grad():
        features = backbone(torch.randn(4, 6))
    loss = nn.functional.cross_entropy(head(features), torch.tensor([0, 1, 2, 0]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
