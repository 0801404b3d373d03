"""Activations are scaled in NumPy for a plot, in the memory that backward still needs."""

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    h = body(torch.randn(16, 4))
    loss = head(h).square().mean()
    shown = h.detach().numpy()
    shown /= abs(shown).max()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# expect: GI103 saved=11 shared=12 backward=15
