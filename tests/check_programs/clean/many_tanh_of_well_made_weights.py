"""Six layers of tanh, with the initial values that are made for it."""

import torch
import torch.nn.functional as F
from torch import nn, optim

torch.manual_seed(2)


def init(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight, gain=5 / 3)
        nn.init.zeros_(m.bias)


def block(a, b):
    return nn.Sequential(nn.Linear(a, b), nn.Tanh())


net = nn.Sequential(block(20, 64), block(64, 64), block(64, 64), block(64, 64), block(64, 64), nn.Linear(64, 4))
net.apply(init)
proto = torch.randn(4, 20) * 2
y = torch.arange(400) % 4
x = proto[y] + torch.randn(400, 20)
opt = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
g = torch.Generator().manual_seed(0)
for _ in range(10):
    for idx in torch.randperm(400, generator=g).split(40):
        loss = F.cross_entropy(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.item())
