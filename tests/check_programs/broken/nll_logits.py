"""The model returns scores, and nll_loss is taken for cross entropy: the loss falls below zero, without end."""

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(6, 12)
        self.scores = nn.Linear(12, 4)

    def forward(self, x):
        return self.scores(F.relu(self.hidden(x)))


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in zip(torch.randn(2, 8, 6), torch.randint(4, (2, 8)), strict=True):
    optimizer.zero_grad()
    F.nll_loss(net(x), y).backward()
    optimizer.step()
# expect: GI352 applied=15 loss=23 backward=23
