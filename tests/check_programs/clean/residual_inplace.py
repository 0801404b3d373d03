"""In-place dropout, then ReLU, and `out += x`: none overwrites what another one needs (dropout after ReLU would)."""

import torch
from torch import nn


class BasicBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.drop = nn.Dropout2d(0.2, inplace=True)

    def forward(self, x):
        out = self.relu(self.drop(self.bn1(self.conv1(x))))
        out = self.bn2(self.conv2(out))
        out += x
        return self.relu(out)


torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(1, 6, 3), BasicBlock(6), BasicBlock(6), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3)
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
for _ in range(4):
    loss = nn.functional.cross_entropy(net(torch.randn(8, 1, 8, 8)), torch.randint(3, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
