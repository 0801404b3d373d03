"""log_softmax over the batch: every example competes with the others instead of every class."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4))
        self.normalize = nn.LogSoftmax(dim=0)

    def forward(self, x):
        return self.normalize(self.layers(x))


torch.manual_seed(0)
net, criterion = Net(), nn.NLLLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    loss = criterion(net(torch.randn(8, 6)), torch.randint(4, (8,)))
    loss.backward()
    optimizer.step()
# expect: GI353 softmax=14 loss=22 backward=23
