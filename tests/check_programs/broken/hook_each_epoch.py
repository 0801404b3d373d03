"""A function that is called before each step, and limits the gradients by hooks."""

from functools import partial

import torch
from torch import nn


def limit(most, grad):
    return grad.clamp(-most, most)


def prepare(model):
    for _, weight in model.named_parameters():
        weight.register_hook(partial(limit, 0.5))


torch.manual_seed(0)
model = nn.Linear(5, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    prepare(model)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(torch.randn(7, 5)), torch.zeros(7, 2)).backward()
    optimizer.step()
# expect: GI802 hooked=15 backward=24
