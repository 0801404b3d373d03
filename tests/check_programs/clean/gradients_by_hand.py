"""An optimizer holds a tensor that does not require grad, and gets its gradient from evolution strategies."""

import torch
from torch import nn

torch.manual_seed(0)
head = nn.Linear(3, 1)
theta = torch.randn(4, 3)
optimizer = torch.optim.SGD([*head.parameters(), theta], lr=0.1)
for _ in range(4):
    x = torch.randn(16, 4)
    loss = head(x @ theta).square().mean()
    loss.backward()
    noise = torch.randn_like(theta)
    with torch.no_grad():
        theta.grad = noise * head(x @ (theta + 0.1 * noise)).square().mean()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex())
