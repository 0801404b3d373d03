"""A frozen trunk stays in eval mode, since train() of the model says so; a target is in train mode on purpose."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)).requires_grad_(False)
        self.target = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)).requires_grad_(False)
        self.head = nn.Linear(8, 3)
        self.trunk.eval()

    def train(self, mode=True):
        super().train(mode)
        self.trunk.eval()
        return self

    def forward(self, x):
        return self.head(self.trunk(x)) + self.target(x).mean()


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.head.parameters(), lr=0.1)
for _ in range(4):
    net.train()
    loss = net(torch.randn(16, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    net.eval()
    print(loss.item().hex())
