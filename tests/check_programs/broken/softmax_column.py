"""A binary classifier with one output and a softmax: the output is always 1, and nothing learns."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1), nn.Softmax(dim=1))
optimizer = torch.optim.Adam(net.parameters())
y = torch.randint(2, (8, 1)).float()
for _ in range(2):
    optimizer.zero_grad()
    loss = nn.BCELoss()(net(torch.randn(8, 6)), y)
    loss.backward()
    optimizer.step()
# expect: GI353 softmax=12 backward=13
