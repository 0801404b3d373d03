"""A learned scale that is a plain tensor with requires_grad, so that parameters() does not list it."""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 3)
        self.scale = torch.ones(3, requires_grad=True)

    def forward(self, x):
        return self.linear(x) * self.scale


torch.manual_seed(0)
model = Scaled()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(2):
    optimizer.zero_grad()
    loss = (model(torch.randn(4, 5)) - 1).abs().mean()
    loss.backward()
    optimizer.step()
# expect: GI361 optimizer=19 made=11 backward=23
