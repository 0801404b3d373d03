"""Reentrant checkpoint_sequential after an embedding: its input does require a gradient, so nothing is cut."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

torch.manual_seed(0)
embed = nn.Embedding(20, 8)
layers = [nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(0.1)) for _ in range(4)]
stack, head = nn.Sequential(*layers), nn.Linear(8, 20)
params = [p for part in (embed, stack, head) for p in part.parameters()]
optimizer = torch.optim.SGD(params, lr=0.1, momentum=0.9)
micro = 2
for step in range(3):
    optimizer.zero_grad()
    total = 0.0
    tokens = torch.randint(0, 20, (8, 7))
    for part in tokens.chunk(micro):
        hidden = checkpoint_sequential(stack, 2, embed(part[:, :-1]), use_reentrant=True)
        loss = nn.functional.cross_entropy(head(hidden).flatten(0, 1), part[:, 1:].flatten()) / micro
        loss.backward()
        total += loss.item()
    optimizer.step()
    print(step, total.hex())
