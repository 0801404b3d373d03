"""A gate that is shut lets no gradient of its own loss through; the trunk learns by the other loss of the graph."""

import torch
from torch import nn

torch.manual_seed(0)
trunk, head = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*trunk.parameters(), *head.parameters()], lr=0.01)
for _ in range(3):
    x, y = torch.randn(16, 4), torch.randn(16, 1)
    h = trunk(x)
    optimizer.zero_grad()
    penalty = torch.relu(h.abs() - 50).sum()  # only large activations are punished
    penalty.backward(retain_graph=True)
    loss = (head(h) - y).square().mean()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.4f}")
