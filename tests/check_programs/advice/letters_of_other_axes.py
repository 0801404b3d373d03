# expect: GI001
# advice: The letter h stands for 6 in one operand and for 2 in another: at letters_of_other_axes.py:16, write the
# advice: letters of each in the order of its dimensions.
"""Heads come after positions in the values, too."""

import torch
from torch import nn

torch.manual_seed(0)
project, out = nn.Linear(16, 48), nn.Linear(16, 16)
optimizer = torch.optim.Adam([*project.parameters(), *out.parameters()], lr=0.01)
x, history = torch.randn(8, 6, 16), []
for _ in range(20):
    q, k, v = project(x).view(8, 6, 3, 2, 8).unbind(2)
    weights = torch.einsum("bqhd,bkhd->bhqk", q, k).softmax(-1)
    y = torch.einsum("bhqk,bhkd->bqhd", weights, v)  # -
    y = torch.einsum("bhqk,bkhd->bqhd", weights, v)  # +
    loss = (out(y.flatten(2)) - x.mean(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
