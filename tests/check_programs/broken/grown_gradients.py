"""create_graph=True although nothing is derived twice, and gradients that are never set to None."""

import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
model = nn.Linear(4, 1)
for _ in range(3):
    loss = model(torch.randn(8, 4)).exp().mean()
    loss.backward(create_graph=True)
# expect: GI801 made=13 backward=13
