"""A view merges the wrong dimensions, so there are more scores than targets."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.fc = nn.Linear(18, 3)

    def forward(self, x):
        features = self.conv(x).relu().view(-1, 18)
        return self.fc(features)


torch.manual_seed(0)
net = Net()
scores = net(torch.randn(5, 1, 8, 8))
loss = nn.functional.cross_entropy(scores, torch.zeros(5, dtype=torch.long))
loss.backward()
# expect: GI001 failed=21
