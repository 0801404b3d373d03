"""Stochastic weight averaging: the average follows the weights after each step, then its BatchNorm is refreshed."""

import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 12), nn.BatchNorm1d(12), nn.ReLU(inplace=True), nn.Linear(12, 1))
averaged = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
swa_scheduler = SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)
x = torch.randn(24, 5)
loader = list(zip(x.split(8), x.sum(1, keepdim=True).split(8), strict=True))
for epoch in range(3):
    for inputs, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), target)
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
    if epoch >= 1:
        averaged.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
update_bn(loader, averaged)
averaged.eval()
with torch.no_grad():
    print("swa", averaged(x).sum().item().hex())
