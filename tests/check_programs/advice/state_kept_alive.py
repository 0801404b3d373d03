# expect: GI102
# expect: GI801
# advice: h = h.detach()
# never: optimizer.step() after
import torch
from torch import nn

torch.manual_seed(0)
cell, head = nn.RNNCell(2, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.05)
h, losses = nn.Parameter(torch.ones(3, 4)) * 1, []
for _ in range(40):
    h = cell(torch.ones(3, 2), h)
    loss = (head(h) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    h = h.detach()  # +
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
