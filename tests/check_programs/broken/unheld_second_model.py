# expect: GI361 optimizer=11 backward=18
"""The second of two models that learn on the same line is in no optimizer."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
large = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
small = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))
optimizer = torch.optim.Adam(large.parameters(), lr=1e-3)

for model, num_steps in ((large, 70), (small, 40)):
    for _ in range(num_steps):
        target = torch.randint(4, (32,))
        loss = F.cross_entropy(model(torch.randn(32, 16) + F.one_hot(target, 16)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
