# expect: GI605
# advice: Use nn.init.kaiming_normal_(weight) at small_relu.py:16, or put a BatchNorm before each relu.
import itertools

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, width=64, depth=5):
        super().__init__()
        sizes = [20, *[width] * depth]
        self.hidden = nn.ModuleList()
        for before, after in itertools.pairwise(sizes):
            layer = nn.Linear(before, after)
            nn.init.normal_(layer.weight, std=0.01)  # -
            nn.init.kaiming_normal_(layer.weight)  # +
            self.hidden.append(layer)
        self.out = nn.Linear(width, 4)

    def forward(self, x):
        for layer in self.hidden:
            x = F.relu(layer(x))
        return self.out(x)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
centers = 2 * torch.randn(4, 20)
losses = []
for _ in range(80):
    y = torch.randint(0, 4, (32,))
    loss = F.cross_entropy(model(centers[y] + torch.randn(32, 20)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
