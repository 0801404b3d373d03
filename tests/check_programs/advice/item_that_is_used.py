# expect: GI301
# lines: detached=17
# never: item_that_is_used.py:16
import torch
from torch import nn

torch.manual_seed(0)
gate, head = nn.Linear(3, 1), nn.Linear(3, 1)
optimizer = torch.optim.SGD([*gate.parameters(), *head.parameters()], lr=0.05)
x, y = torch.randn(16, 3), torch.randn(16, 1)
losses, seen = [], []
for _ in range(20):
    optimizer.zero_grad()
    weight = torch.sigmoid(gate(x)).mean()

    seen.append(weight.item())
    strength = weight.item()  # -
    loss = (head(x) * torch.tensor(strength) - y).square().mean()  # -
    loss = (head(x) * weight - y).square().mean()  # +
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
