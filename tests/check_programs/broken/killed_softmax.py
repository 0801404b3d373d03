"""Attention weights are summed up: they add up to 1 whatever the scores are."""

import torch
from torch import nn

torch.manual_seed(0)
scorer = nn.Linear(4, 6)
weights = torch.softmax(scorer(torch.randn(3, 4)), -1)
loss = (weights.sum(-1) - 0.5).pow(2).mean()
loss.backward()
# expect: GI601 zeroed=8 backward=10
