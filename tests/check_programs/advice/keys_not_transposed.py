# expect: GI001
# advice: At keys_not_transposed.py:14, the last dimension of the first must be the second of the other: transpose(1,
# advice: 2) exchanges them.
"""Queries are multiplied by keys that lie as they do."""

import torch
from torch import nn

torch.manual_seed(0)
query, key, value = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)
optimizer = torch.optim.Adam([*query.parameters(), *key.parameters(), *value.parameters()], lr=0.01)
x, history = torch.randn(8, 6, 16), []
for _ in range(20):
    scores = torch.bmm(query(x), key(x))  # -
    scores = torch.bmm(query(x), key(x).transpose(1, 2))  # +
    loss = (scores.div(4).softmax(-1) @ value(x) - x.mean(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
