"""Lists, one of them empty, and iterators that are made for each call are clipped, and a norm is measured."""

from collections.abc import Iterator

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
model[0].requires_grad_(False)
others: list[nn.Parameter] = []


def trained() -> Iterator[nn.Parameter]:
    return filter(lambda p: p.requires_grad, model.parameters())


once = trained()
optimizer = torch.optim.SGD(once, lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    (model(torch.randn(8, 4)) - torch.tensor(1.0)).square().mean().backward()
    nn.utils.clip_grad_norm_(others, 1.0)
    each_time = trained()
    nn.utils.clip_grad_norm_(each_time, 1.0)
    nn.utils.clip_grad_norm_([*once], float("inf"))
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
