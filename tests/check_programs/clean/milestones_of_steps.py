"""Schedules that are stepped for each batch, and made for that."""

import torch
from torch import nn
from torch.optim import lr_scheduler

torch.manual_seed(0)
epochs, x = 8, torch.randn(64, 4)
for make in (
    lambda one: lr_scheduler.MultiStepLR(one, [4 * epochs, 6 * epochs], gamma=0.5),
    lambda one: lr_scheduler.MultiStepLR(one, [2, 4, 6], gamma=0.9),
    lambda one: lr_scheduler.StepLR(one, step_size=4, gamma=0.9),
):
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = make(optimizer)
    for _epoch in range(epochs):
        for rows in torch.randperm(64).split(8):
            loss = (model(x[rows]) - x[rows, :1]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = lr_scheduler.MultiStepLR(optimizer, milestones=[3, 6])
for _epoch in range(epochs):
    for rows in torch.randperm(64).split(8):
        loss = (model(x[rows]) - x[rows, :1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
print("loss", loss.item())
