"""Scores of several inputs are collected in a list and made into a tensor with torch.tensor."""

import torch
from torch import nn

torch.manual_seed(0)
scorer = nn.Linear(4, 1)
weights = nn.Parameter(torch.zeros(3))
optimizer = torch.optim.SGD([{"params": scorer.parameters()}, {"params": [weights]}], lr=0.1)
for _ in range(2):
    scores = []
    for _ in range(3):
        scores.append(scorer(torch.randn(4)).squeeze())
    scores = torch.tensor(scores)
    loss = (scores * weights.softmax(0)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI301 read=13 detached=14 used=15 backward=17 step=18
