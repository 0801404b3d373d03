"""The scheduler of the epochs is stepped for each batch."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
for _ in range(2):
    for _ in range(5):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(torch.randn(8, 5)), torch.randint(2, (8,)))
        loss.backward()
        optimizer.step()
        scheduler.step()
# expect: GI381 step=15 scheduler=16
