"""A learned scale that forward never multiplies with."""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return torch.tanh(self.linear(x))


torch.manual_seed(0)
model = Scaled()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    loss = model(torch.randn(3, 4)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI304 backward=23 step=24 optimizer=19
