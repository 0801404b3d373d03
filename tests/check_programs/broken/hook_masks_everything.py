"""A mask that is made for half of the rows, and is empty because of integer division, in a hook on a weight."""

import torch
from torch import nn


class Masked(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.first = nn.Linear(6, rows)
        self.second = nn.Linear(rows, 1)
        self.mask = torch.zeros(rows, 1)
        self.mask[: rows // 32] = 1
        self.first.weight.register_hook(self.masked)

    def masked(self, grad):
        return grad * self.mask

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


torch.manual_seed(0)
model = Masked(16)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(3):
    x = torch.randn(8, 6)
    optimizer.zero_grad()
    loss = (model(x) - x[:, :1]).square().mean()
    loss.backward()
    optimizer.step()
# expect: GI803 hooked=14 backward=30
