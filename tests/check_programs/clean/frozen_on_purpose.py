"""Freezes a body and passes all of the model to one optimizer, beside one that waits to be unfrozen."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(4, 8), nn.Tanh()), nn.Linear(8, 1)
slow = nn.Linear(1, 1)
model = nn.Sequential(body, head, slow)
for name, param in model.named_parameters():
    if name.startswith("0.") or any(word in name for word in ("norm", "0.0")):
        param.requires_grad_(False)
slow.requires_grad_(False)
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=0.01)
later = torch.optim.Adam(slow.parameters(), lr=0.01)
x = torch.randn(32, 4)
for step in range(30):
    if step == 25:
        slow.requires_grad_(True)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean() + 0 * average(x).mean()
    optimizer.zero_grad()
    later.zero_grad()
    loss.backward()
    optimizer.step()
    later.step()
