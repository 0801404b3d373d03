"""A module keeps its outputs to look at them later, in every forward pass."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.features = []

    def forward(self, x):
        y = torch.relu(self.layer(x))
        self.features.append(y)
        return y


torch.manual_seed(0)
model = nn.Sequential(Encoder(), nn.Linear(4, 1))
for _ in range(3):
    loss = model(torch.randn(8, 4)).pow(2).mean()
    loss.backward()
# expect: GI801 stored=15 backward=23
