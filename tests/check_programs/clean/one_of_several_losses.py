"""Of several losses that a line computes, one is chosen, or all are added up, before backward is called."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(6):
    hardest, total = None, torch.zeros(())
    for x in torch.randn(5, 8, 6):
        loss = (model(x) - x[:, :1]).square().mean()
        if hardest is None or loss > hardest:
            hardest = loss
    for x in torch.randn(5, 8, 6):
        total = total + (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    hardest.backward()
    total.backward()
    optimizer.step()
