# expect: GI001
# why: words is int64 [64], from 0 to 10
# advice: Count indices from 0, or make the embedding larger: of n rows, the last has the index n - 1.
# lines: failed=18
"""Ten words, and one for those that are unknown."""

import torch
from torch import nn

torch.manual_seed(0)
table = nn.Embedding(10, 4)  # -
table = nn.Embedding(11, 4)  # +
words = torch.arange(64) % 11
wanted = torch.randn(11, 4)[words]
optimizer = torch.optim.SGD(table.parameters(), lr=5.0)
history = []
for _ in range(10):
    loss = (table(words) - wanted).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
