"""Layers without a bias are kept in a plain list."""

import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = [nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)]
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        for part in self.parts:
            x = torch.relu(part(x))
        return self.head(x)


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
# expect: GI361 optimizer=22 made=12 backward=25
