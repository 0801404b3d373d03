# expect: GI101
# advice: Collect the parts in a list and torch.stack() them instead of assigning to h at rows_assigned.py:16.
# lines: backward=21 saved=16 written=16
import torch
from torch import nn

torch.manual_seed(0)
cell = nn.Linear(4, 4)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.05)
y = torch.rand(4)
losses = []
for _ in range(30):
    h = torch.ones(5, 4)  # -
    h = [torch.ones(4)]  # +
    for t in range(4):
        h[t + 1] = torch.tanh(cell(h[t]))  # -
        h.append(torch.tanh(cell(h[t])))  # +
    h = torch.stack(h)  # +
    loss = (h - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
