"""First-order MAML: the inner gradients are constants on purpose. Gradient norms are logged."""

import torch
from torch import nn

torch.manual_seed(0)
w, b = nn.Parameter(torch.randn(3, 1)), nn.Parameter(torch.zeros(1))
optimizer = torch.optim.Adam([w, b])
for _ in range(2):
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    inner = ((x[:4] @ w + b - y[:4]) ** 2).mean()
    dw, db = torch.autograd.grad(inner, (w, b))
    fast_w, fast_b = w - 0.1 * dw, b - 0.1 * db
    outer = ((x[4:] @ fast_w + fast_b - y[4:]) ** 2).mean()
    optimizer.zero_grad()
    outer.backward()
    total = 0.0
    for p in (w, b):
        if p.grad is not None:
            total += p.grad.norm() ** 2
    optimizer.step()
    print(outer.item().hex(), total.sqrt().item().hex())
