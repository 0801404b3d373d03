"""zero_grad comes after backward."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def update(loss):
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()


for _ in range(2):
    update(model(torch.randn(5, 4)).square().mean())
# expect: GI363 backward=12 cleared=13 step=14
