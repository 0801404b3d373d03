"""The scheduler steps at the top of each epoch, as before PyTorch 1.1."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
for _ in range(2):
    scheduler.step()
    for _ in range(2):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,)))
        loss.backward()
        optimizer.step()
# expect: GI367 scheduler=11 step=16
