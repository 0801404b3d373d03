"""Layers that come between two trainings by one function: the optimizer is made anew, or gets them later."""

import copy

import torch
from torch import nn


class Grown(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
        self.blocks = nn.ModuleList()
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        x = self.features(x)
        for block in self.blocks:
            x = x + block(x).relu()
        return self.fc(x)


def fit(net, opt):
    for _ in range(6):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(torch.randn(16, 6)), torch.randint(3, (16,)))
        loss.backward()
        opt.step()


def another_head():
    net = Grown()
    fit(net, torch.optim.Adam(net.parameters(), lr=0.01))
    net.features.requires_grad_(False)
    net.fc = nn.Linear(8, 3)
    fit(net, torch.optim.Adam(net.fc.parameters(), lr=0.01))


def another_block():
    net = Grown()
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        fit(net, opt)
        net.blocks.append(nn.Linear(8, 8))
        opt.add_param_group({"params": list(net.blocks[-1].parameters())})
    fit(net, opt)


def a_copy_for_each_fold():
    first = Grown()
    for _ in range(3):
        net = copy.deepcopy(first)
        fit(net, torch.optim.Adam(net.parameters(), lr=0.01))


torch.manual_seed(0)
another_head()
another_block()
a_copy_for_each_fold()
