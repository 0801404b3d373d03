"""A masked language model: padding and most tokens have the label that cross_entropy ignores if nothing is said."""

import torch
from torch import nn

torch.manual_seed(0)
PAD, MASK = 0, 29
embed, mix, head = nn.Embedding(30, 16, padding_idx=PAD), nn.GRU(16, 16, batch_first=True), nn.Linear(16, 30)
optimizer = torch.optim.AdamW([*embed.parameters(), *mix.parameters(), *head.parameters()], lr=1e-2)
criterion = nn.CrossEntropyLoss()
for _ in range(20):
    tokens = torch.randint(1, 29, (8, 16))
    lengths = torch.randint(4, 16, (8, 1))
    tokens[torch.arange(16) >= lengths] = PAD
    hidden = (torch.rand(8, 16) < 0.3) & (tokens != PAD)
    hidden[:, 0] = True
    labels = tokens.masked_fill(~hidden, -100)
    scores = head(mix(embed(tokens.masked_fill(hidden, MASK)))[0])
    loss = criterion(scores.reshape(-1, 30), labels.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
