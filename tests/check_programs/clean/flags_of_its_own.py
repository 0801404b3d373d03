"""Modules with a `requires_grad` that their own code reads, and parameters with attributes of the program."""

import torch
from torch import nn


class Features(nn.Module):
    """Its parameters learn if its scale does not."""

    def __init__(self, requires_grad):
        super().__init__()
        self.requires_grad = requires_grad
        self.inner = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.ones(4), requires_grad=requires_grad)

    def forward(self, x):
        return self.inner(x) * (self.scale if self.requires_grad else self.scale.detach())


class Frozen(nn.Module):
    """Its constructor does what the flag says."""

    def __init__(self, *, requires_grad=True):
        super().__init__()
        self.requires_grad = requires_grad
        self.layer = nn.Linear(4, 4)
        for p in self.parameters():
            p.requires_grad = requires_grad

    def forward(self, x):
        return self.layer(x)


torch.manual_seed(0)
model = nn.Sequential(Features(requires_grad=False), Frozen(requires_grad=False), nn.Linear(4, 1))
for p in model.parameters():
    p.has_gradient_noise = False
    p.sync_grad = False
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    loss = model(torch.ones(3, 4)).square().mean()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
