"""Manual SGD in three styles, one part of the model by hand and the other by an optimizer that is there."""

import torch
from torch import nn

torch.manual_seed(0)
body, head, spare = nn.Linear(4, 6), nn.Linear(6, 1), nn.Linear(2, 2)
w = torch.randn(4, 1, requires_grad=True)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
unused = torch.optim.Adam(spare.parameters(), lr=0.0)
for _ in range(3):
    x = torch.randn(8, 4)
    loss = head(body(x).tanh()).square().mean() + (x @ w).square().mean()
    loss.backward()
    for p in body.parameters():
        p.data -= 0.1 * p.grad
        p.grad = None
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad.zero_()
    optimizer.step()
    optimizer.zero_grad()
    print(loss.item().hex())
# options: --steps 3
