"""Each stage begins with a hook on its own part, and a forward hook is replaced in each iteration."""

import torch
from torch import nn

torch.manual_seed(0)
parts = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])
optimizer = torch.optim.SGD(parts.parameters(), lr=0.05)


def smaller(grad):
    return grad * 0.9


def look(_module, _inputs, output):
    seen.append(output.detach().mean().item())


seen, handle = [], None
for part in parts:
    part.weight.register_hook(smaller)
    for _ in range(2):
        if handle is not None:
            handle.remove()
        handle = part.register_forward_hook(look)
        optimizer.zero_grad()
        x = torch.ones(3, 4)
        for one in parts:
            x = torch.tanh(one(x))
        loss = x.square().mean()
        loss.backward()
        optimizer.step()
        print(loss.item().hex(), seen[-1].hex())
