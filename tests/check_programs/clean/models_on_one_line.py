"""Two models learn one after the other, on the same lines, each with an optimizer that was made before; then both."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
large = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
small = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))
optimizers = {one: torch.optim.Adam(one.parameters(), lr=1e-3) for one in (large, small)}

for models, num_steps in (([large], 70), ([small], 40), ([large, small], 20)):
    for _ in range(num_steps):
        target = torch.randint(4, (32,))
        x = torch.randn(32, 16) + F.one_hot(target, 16)
        loss = torch.stack([F.cross_entropy(model(x), target) for model in models]).sum()
        for model in models:
            optimizers[model].zero_grad()
        loss.backward()
        for model in models:
            optimizers[model].step()
