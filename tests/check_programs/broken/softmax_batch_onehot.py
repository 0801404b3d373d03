"""Probabilities over the batch, compared with one-hot targets."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 4), nn.Softmax(0))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
targets = nn.functional.one_hot(torch.randint(4, (8,)), 4).float()
for _ in range(2):
    optimizer.zero_grad()
    p = net(torch.randn(8, 6))
    nn.functional.mse_loss(p, targets).backward()
    optimizer.step()
# expect: GI353 softmax=12 loss=13 backward=13
