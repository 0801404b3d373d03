"""The trunk of a second model is to be frozen, after another model was trained."""

import copy

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.trunk = nn.Linear(4, 8)
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        return self.head(self.trunk(x).relu())


def fit(net, optimizer):
    for _ in range(4):
        loss = net(torch.randn(8, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


first, second = Net(5), Net(3)
fit(first, torch.optim.Adam(first.parameters()))
second.trunk = copy.deepcopy(first.trunk)
second.trunk.requires_grad = False
fit(second, torch.optim.Adam(second.parameters()))

# expect: GI374 set=30 backward=23
