"""MoCo: the queue is a buffer overwritten in forward, after the loss's product took a clone of it."""

import copy

import torch
from torch import nn
from torch.nn import functional as F


class MoCo(nn.Module):
    def __init__(self, dim=4, size=16):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, dim))
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(dim, size), dim=0))
        self.pointer = 0

    @torch.no_grad()
    def keys(self, x):
        for q, k in zip(self.query.parameters(), self.key.parameters(), strict=True):
            k.data = k.data * 0.9 + q.data * 0.1
        return F.normalize(self.key(x), dim=1)

    def forward(self, im_q, im_k):
        q, k = F.normalize(self.query(im_q), dim=1), self.keys(im_k)
        positive = torch.einsum("nc,nc->n", q, k).unsqueeze(-1)
        negative = q @ self.queue.clone().detach()
        self.queue[:, self.pointer : self.pointer + len(k)] = k.T
        self.pointer = (self.pointer + len(k)) % self.queue.shape[1]
        return torch.cat([positive, negative], dim=1) / 0.2, torch.zeros(len(k), dtype=torch.long)


torch.manual_seed(0)
model = MoCo()
optimizer = torch.optim.SGD(model.query.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(4, 6)
    loss = F.cross_entropy(*model(x + 0.1 * torch.randn(4, 6), x + 0.1 * torch.randn(4, 6)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
