"""Weights averaged over the end of a training, whose batch norms get their statistics before the average is called."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 1))
average = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
batches = [torch.randn(16, 6) + 2 for _ in range(8)]
for _epoch in range(4):
    model.train()
    for x in batches:
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    average.update_parameters(model)
update_bn(batches, average)
average.eval()
with torch.no_grad():
    print(float((average(batches[0]) - batches[0].sum(1, keepdim=True)).square().mean()))
