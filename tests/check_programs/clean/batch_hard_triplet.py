"""Batch-hard triplets: the distance of a point to itself is zero, so the root is taken of a filled-in one there."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def pairwise_distance(z):
    gram = z @ z.T
    square = gram.diagonal()
    d2 = (square[:, None] - 2 * gram + square[None, :]).clamp(min=0)
    zero = d2 < 1e-12
    return torch.where(zero, torch.ones_like(d2), d2).sqrt().masked_fill(zero, 0.0)


def batch_hard(z, labels, margin=0.5):
    d = pairwise_distance(z)
    same = labels[:, None] == labels[None, :]
    hardest_positive = d.masked_fill(~same, 0.0).max(dim=1).values
    hardest_negative = d.masked_fill(same, float("inf")).min(dim=1).values
    return F.relu(hardest_positive - hardest_negative + margin).mean()


net = nn.Linear(6, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
labels = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])
for _ in range(4):
    x = torch.randn(8, 6) + labels[:, None]
    loss = batch_hard(net(x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
