# expect: GI709
# advice: At queries_shared_out.py:24, apply softmax along the last axis: dim=-1.
import math

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        query, key, value = self.qkv(x).chunk(3, dim=-1)
        scores = query @ key.transpose(-2, -1) / math.sqrt(x.shape[-1])
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, float("-inf"))

        # fmt: off
        weights = F.softmax(scores, dim=-2)  # -
        weights = F.softmax(scores, dim=-1)  # +
        # fmt: on
        return self.out(self.dropout(weights) @ value)


torch.manual_seed(0)
embed, attend, head = nn.Embedding(12, 32), Attention(32), nn.Linear(32, 12)
optimizer = torch.optim.Adam([*embed.parameters(), *attend.parameters(), *head.parameters()], lr=0.01)
losses = []
for _ in range(60):
    tokens = torch.randint(12, (16, 8))
    hidden = embed(tokens)
    logits = head(hidden + attend(hidden))
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, :1].expand(-1, 8).flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
