"""The norm of the gradients is added to the loss, read from .grad after a first backward."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    x = torch.randn(5, 4)
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    norm = sum(p.grad.norm() for p in model.parameters())
    total = loss + 0.1 * norm
    total.backward()
    optimizer.step()
# expect: GI402 gradient=14 used=15 backward=16
