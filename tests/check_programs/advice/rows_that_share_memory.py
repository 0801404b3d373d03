# expect: GI001
# advice: What expand() repeats is not copied: write repeat() where that tensor is made, or expand() and clone().
"""Each row of the mask is the same memory."""

import torch
from torch import nn

torch.manual_seed(0)
query = nn.Linear(8, 8)
optimizer = torch.optim.Adam(query.parameters(), lr=0.02)
x, length, history = torch.randn(16, 10, 8), torch.arange(16) % 8 + 2, []
for _ in range(20):
    bias = torch.zeros(1, 10).expand(16, 10)  # -
    bias = torch.zeros(1, 10).repeat(16, 1)  # +
    bias += -1e9 * (torch.arange(10) >= length[:, None])
    weights = (torch.einsum("nd,ntd->nt", query(x.mean(1)), x) + bias).softmax(1)
    loss = (torch.einsum("nt,ntd->nd", weights, x) - x[:, 0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
