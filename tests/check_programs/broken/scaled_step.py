"""The loss is scaled for mixed precision, and the optimizer steps without the scaler."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for _ in range(3):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.randn(5, 4)).float().square().mean()
    scaler.scale(loss / 2).backward()
    optimizer.step()
    optimizer.zero_grad()
# expect: GI369 backward=13 step=14
