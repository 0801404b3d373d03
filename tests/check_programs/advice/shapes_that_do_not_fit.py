# expect: GI001
# advice: Which of these shapes is not the one you expect? Follow it back from the line that made it.
# lines: failed=15
import torch
from torch import nn

torch.manual_seed(0)
body, gate, head = nn.Linear(4, 8), nn.Linear(4, 6), nn.Linear(8, 1)  # -
body, gate, head = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(8, 1)  # +
optimizer = torch.optim.SGD([*body.parameters(), *gate.parameters(), *head.parameters()], lr=0.1)
x, losses = torch.randn(32, 4), []
for _ in range(20):
    h = body(x)
    opened = torch.sigmoid(gate(x))
    loss = (head(h * opened) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
