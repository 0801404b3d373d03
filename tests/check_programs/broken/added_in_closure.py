"""LBFGS calls the closure many times in a step; the gradients are cleared once, before it."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=6)
x, y = torch.randn(20, 3), torch.randn(20, 1)


def closure():
    loss = (model(x) - y).square().mean()
    loss.backward()
    return loss


for _ in range(3):
    optimizer.zero_grad()
    optimizer.step(closure)
# expect: GI362 backward=14 step=20
