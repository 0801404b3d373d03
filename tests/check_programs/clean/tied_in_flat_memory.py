"""Parameters that are parts of one memory, and one that two layers share; an average that has its own."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
flat = torch.randn(24)
parts = nn.ParameterList([nn.Parameter(flat[:12].view(3, 4)), nn.Parameter(flat[12:].view(3, 4))])
parts.append(nn.Parameter(torch.empty(0)))
parts.append(nn.Parameter(torch.empty(0)))
recurrent = nn.GRU(4, 4, batch_first=True)
recurrent.flatten_parameters()
embed, out = nn.Embedding(6, 4), nn.Linear(4, 6, bias=False)
out.weight = embed.weight
averaged = copy.deepcopy(embed)
averaged.weight.data = embed.weight.data.clone()
frozen = nn.Parameter(embed.weight, requires_grad=False)
layers = [*parts, *recurrent.parameters(), *embed.parameters(), *out.parameters()]
optimizer = torch.optim.Adam([*dict.fromkeys(layers), *averaged.parameters(), frozen], lr=0.01)
for _ in range(3):
    optimizer.zero_grad()
    words = torch.arange(6).view(2, 3)
    states, _ = recurrent(embed(words) + parts[0] - parts[1])
    loss = nn.functional.cross_entropy(out(states).flatten(0, 1), words.flatten())
    loss = loss + averaged(words).square().mean() + sum(part.sum() for part in parts[2:])
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
