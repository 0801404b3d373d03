"""Predictions for a whole episode are made first, and the weights are updated sample by sample."""

import torch
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
log_probs = []
for _ in range(3):
    log_probs.append(policy(torch.randn(1, 4)).log_softmax(-1)[0, 0])
for log_prob in log_probs:
    loss = -log_prob
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI102 saved=11 written=16
