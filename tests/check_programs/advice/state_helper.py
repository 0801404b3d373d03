# expect: GI401
# advice: h = h.detach()
import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.GRUCell(2, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.05)


def advance(x, h):
    update = cell(x, h)
    return 0.5 * update + 0.5 * h


def train(steps):
    h, losses = torch.zeros(3, 4), []
    for _ in range(steps):
        h = advance(torch.ones(3, 2), h)
        loss = (head(h) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        h = h.detach()  # +
        optimizer.step()
        losses.append(loss.item())
    return losses


found = train(40)
print("loss", found[0], found[-1])
