"""A regularizer of the activations is detached, and added with a weight."""

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(6, 8), nn.Linear(8, 2)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    h = body(torch.randn(8, 6)).relu()
    sparsity = h.abs().mean().detach()
    loss = nn.functional.cross_entropy(head(h), torch.randint(2, (8,))) + 0.1 * sparsity
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI306 detached=11 used=12 backward=14
