"""Quantile regression: a column of targets against three columns of predictions, broadcast on purpose."""

import torch
from torch import nn

torch.manual_seed(0)
quantiles = torch.tensor([0.1, 0.5, 0.9])


class QuantileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 12), nn.SiLU())
        self.lowest, self.gaps = nn.Linear(12, 1), nn.Linear(12, 2)

    def forward(self, x):
        h = self.body(x)
        low = self.lowest(h)
        return torch.cat([low, low + nn.functional.softplus(self.gaps(h)).cumsum(dim=1)], dim=1)


def pinball(prediction, target):
    error = target - prediction
    return torch.maximum(quantiles * error, (quantiles - 1) * error).sum(dim=1).mean()


model = QuantileNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(3):
    x, noise = torch.randn(16, 3), torch.randn(16, 1)
    optimizer.zero_grad()
    loss = pinball(model(x), x.sum(dim=1, keepdim=True) + noise)
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
