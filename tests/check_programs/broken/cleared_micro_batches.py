"""Gradients are to be added up over three batches, but they are cleared before each of them."""

import torch
from torch import nn


def accumulate(model, batches, optimizer, every=3):
    for number, (x, y) in enumerate(batches, 1):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y) / every
        loss.backward()
        if number % every == 0:
            optimizer.step()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
accumulate(model, [(torch.randn(4, 6), torch.randn(4, 2)) for _ in range(12)], optimizer)
# expect: GI363 cleared=9 backward=11 step=13
