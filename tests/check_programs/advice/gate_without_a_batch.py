# expect: GI601
# advice: At gate_without_a_batch.py:15, does it weigh several things, or is it a gate? To weigh, let the layer before
# advice: it return a score for each. For a gate between 0 and 1, use sigmoid.
# lines: backward=19 zeroed=15
import torch
from torch import nn

torch.manual_seed(0)
body, gate, head = nn.Linear(4, 8), nn.Linear(4, 1), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*body.parameters(), *gate.parameters(), *head.parameters()], lr=0.05)
x, losses = torch.randn(64, 4), []
for _ in range(10):
    total = 0.0
    for row in x:
        opened = torch.softmax(gate(row), dim=0)  # -
        opened = torch.sigmoid(gate(row))  # +
        loss = (head(opened * body(row)) - row[:1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    losses.append(total)
print("loss", losses[0], losses[-1])
