"""Milestones that count batches, of which the last one is far from the end."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(96, 5)
y = (x[:, 0] * x[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[10, 30], gamma=0.2)
for epoch in range(8):
    for rows in torch.randperm(96).split(16):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    print(epoch, loss.item())
