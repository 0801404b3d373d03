"""A fresh inner optimizer for each task, layers unfrozen and added with add_param_group, a schedule that is resumed."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
model[0].requires_grad_(False)
optimizer = torch.optim.Adam(model[2].parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
for _ in range(3):
    scheduler.step()  # to where training was interrupted
for stage in range(3):
    fast = copy.deepcopy(model)
    inner = torch.optim.SGD(fast.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        inner.zero_grad()
        loss = fast(torch.randn(5, 4)).square().mean()
        loss.backward()
        inner.step()
    if stage == 1:
        model[0].requires_grad_(True)
        optimizer.add_param_group({"params": model[0].parameters()})
        model.append(nn.Linear(1, 1))
        optimizer.add_param_group({"params": model[3].parameters()})
    optimizer.zero_grad()
    loss = model(torch.randn(5, 4)).square().mean()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(loss.item().hex())
# options: --steps 9
