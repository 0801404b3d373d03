# expect: GI601
# advice: At gate_of_one_score.py:14, does it weigh the 64 of dimension 0, or is it a gate? To weigh, normalize over
# advice: that. For a gate between 0 and 1, use sigmoid.
# lines: backward=18 zeroed=14
import torch
from torch import nn

torch.manual_seed(0)
body, gate, head = nn.Linear(4, 8), nn.Linear(4, 1), nn.Linear(8, 1)
optimizer = torch.optim.SGD([*body.parameters(), *gate.parameters(), *head.parameters()], lr=0.2)
x, losses = torch.randn(64, 4), []
y = x[:, :1] * (x[:, 1:2] > 0)
for _ in range(60):
    opened = torch.softmax(gate(x), dim=1)  # -
    opened = torch.sigmoid(gate(x))  # +
    loss = (head(opened * body(x)) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
