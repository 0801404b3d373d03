"""A preallocated KV cache written in place at each position: attention reads clones, so the saved values stay."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, d=6, vocab=9):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.q, self.k, self.v = (nn.Linear(d, d, bias=False) for _ in range(3))
        self.lm_head = nn.Linear(d, vocab)

    def forward(self, tokens):
        keys = torch.zeros(*tokens.shape, self.embed.embedding_dim)
        values = torch.zeros_like(keys)
        logits = []
        for t in range(tokens.shape[1]):
            h = self.embed(tokens[:, t])
            keys[:, t], values[:, t] = self.k(h), self.v(h)
            past_k, past_v = keys[:, : t + 1].clone(), values[:, : t + 1].clone()
            weights = torch.einsum("bd,btd->bt", self.q(h), past_k).softmax(-1)
            logits.append(self.lm_head(h + torch.einsum("bt,btd->bd", weights, past_v)))
        return torch.stack(logits, dim=1)


torch.manual_seed(0)
model = Decoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(3):
    tokens = torch.randint(9, (4, 6))
    loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
