# expect: GI601
# advice: At gate_of_large_scores.py:14, scale its input down, or normalize it.
# lines: zeroed=14
import torch
from torch import nn

torch.manual_seed(0)
body, gate, head = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*body.parameters(), *gate.parameters(), *head.parameters()], lr=0.1)
x, losses = torch.randn(64, 4), []
y = x[:, :1].tanh()
for _ in range(20):
    h = gate(torch.relu(body(x)) + 1)
    opened = torch.sigmoid(h * 1e4 + 1e6)  # -
    opened = torch.sigmoid(h)  # +
    loss = (head(opened) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
