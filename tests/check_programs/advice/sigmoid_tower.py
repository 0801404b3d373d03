# expect: GI605
# advice: Put a BatchNorm before each sigmoid, or use relu with nn.init.kaiming_normal_(weight) at sigmoid_tower.py:20.
import torch
from torch import nn


def rings(count):
    ring = torch.randint(0, 2, (count,)).float()
    angle = 6.2832 * torch.rand(count)
    radius = 1 + ring + 0.1 * torch.randn(count)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), ring[:, None]


torch.manual_seed(0)
layers, inputs = [], 2
for _ in range(10):
    # fmt: off
    layers += [nn.Linear(inputs, 24), nn.BatchNorm1d(24), nn.Sigmoid()]  # +

    layers += [nn.Linear(inputs, 24), nn.Sigmoid()]  # -
    # fmt: on
    inputs = 24
model = nn.Sequential(*layers, nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
loss_of = nn.BCEWithLogitsLoss()
x, y = rings(400)
losses = []
for _ in range(15):
    for rows in torch.randperm(400).split(40):
        loss = loss_of(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print("loss", losses[0], losses[-1])
