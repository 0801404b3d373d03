"""Cosines with a learned scale, a sure gate, several positives of a batch, and all words of an autoencoder."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

torch.manual_seed(0)
encoder, scale = nn.Linear(6, 8), nn.Parameter(torch.tensor(2.0))
gate, value, head = nn.Linear(6, 8), nn.Linear(6, 8), nn.Linear(8, 3)
table, words = nn.Embedding(12, 8), nn.Linear(8, 12)
with torch.no_grad():
    gate.weight.mul_(2)
    gate.bias.fill_(9)
parts = nn.ModuleList([encoder, gate, value, head, table, words])
optimizer = torch.optim.Adam([*parts.parameters(), scale], lr=0.01)
kind = torch.arange(12) % 4
same = (kind[:, None] == kind).float()
for _ in range(6):
    x = torch.randn(12, 6) + kind[:, None]
    z = normalize(encoder(x))
    contrast = cross_entropy(z @ z.T * scale.exp(), same)
    gated = gate(x).sigmoid() * value(x)
    answer = cross_entropy(head(gated), kind.clamp(max=2))
    ids = torch.randint(1, 12, (4, 9))
    ids[:, 6:] = 0
    labels = ids.masked_fill(ids == 0, -100)
    copied = cross_entropy(words(table(ids)).flatten(0, 1), labels.flatten())
    optimizer.zero_grad()
    (contrast + answer + copied).backward()
    optimizer.step()
