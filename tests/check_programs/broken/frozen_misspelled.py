"""An encoder that is to be frozen, through an attribute of each parameter whose name lacks a letter."""

import torch
from torch import nn


def freeze(part):
    for weight in part.parameters():
        weight.requires_gard = False


torch.manual_seed(0)
encoder = nn.LSTM(3, 6, batch_first=True)
classify = nn.Linear(6, 4)
freeze(encoder)
optimizer = torch.optim.AdamW([*encoder.parameters(), *classify.parameters()], lr=0.01)
for _ in range(2):
    optimizer.zero_grad()
    states, _ = encoder(torch.randn(5, 7, 3))
    loss = nn.functional.cross_entropy(classify(states[:, -1]), torch.randint(4, (5,)))
    loss.backward()
    optimizer.step()
# expect: GI374 set=9 backward=21
