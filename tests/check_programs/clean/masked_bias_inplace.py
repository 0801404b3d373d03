"""Masks and dropout in place: on tensors without history, and on scores whose old values nobody needs."""

import torch
from torch import nn

torch.manual_seed(0)


class CausalAttention(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        bias = torch.zeros(length, length)
        bias.masked_fill_(torch.ones(length, length).triu(1).bool(), float("-inf"))
        self.register_buffer("bias", bias)

    def forward(self, x, padding):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2)
        scores.div_(q.size(-1) ** 0.5)
        scores += self.bias
        scores.masked_fill_(padding[:, None, :], float("-inf"))
        return self.out(nn.functional.dropout(scores.softmax(-1), 0.1, self.training) @ v)


model = CausalAttention(8, 5)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=True)
padding = torch.zeros(3, 5, dtype=torch.bool)
padding[1, 3:] = True
for _ in range(3):
    x = torch.randn(3, 5, 8)
    error = (model(x, padding) - x.roll(1, dims=1)).square()
    loss = error.masked_fill(padding[..., None], 0.0).sum() / (~padding).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
