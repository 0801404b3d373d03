"""A projection is made in the first forward pass, after the optimizer."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 12)
        self.proj = None

    def forward(self, x):
        y = self.inner(x).relu()
        if self.proj is None:
            self.proj = nn.Linear(x.shape[1], y.shape[1])
        return y + self.proj(x)


torch.manual_seed(0)
model = nn.Sequential(Block(), nn.Linear(12, 1))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(4, 6)).square().mean().backward()
    optimizer.step()
# expect: GI361 optimizer=22 added=16 backward=25
