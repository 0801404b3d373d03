"""Causal attention over padded sentences: right padding, so each row still sees its first token."""

import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
PAD = 0


class TinyLM(nn.Module):
    def __init__(self, vocab=11, dim=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, tokens):
        q, k, v = self.qkv(self.embed(tokens)).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        hidden = torch.ones_like(scores[0], dtype=torch.bool).triu(1) | (tokens == PAD)[:, None, :]
        return self.out(scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v)


model = TinyLM()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
tokens = torch.tensor([[1, 5, 3, 7, 2, 9], [1, 4, 8, 2, 0, 0], [1, 6, 10, 3, 2, 0]])
for _ in range(3):
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
