"""Pretrained vectors are copied into an embedding, before any backward call."""

import torch
from torch import nn

torch.manual_seed(0)
vectors = torch.randn(4, 8)
table = nn.Embedding(20, 8)
for index, vector in enumerate(vectors):
    table.weight[index] = vector
scores = nn.Linear(8, 2)
loss = nn.functional.cross_entropy(scores(table(torch.arange(6))), torch.zeros(6, dtype=torch.long))
loss.backward()
# expect: GI001 failed=10
