# expect: GI391
# why: pruned_once.py:13 has set 56 of 128 elements of weight to zero once, and optimizer at
# advice: Write the zeros of pruned_once.py:13 again after each step of optimizer, or mask the weight in forward
# lines: masked=13 step=20
import torch
from torch import nn

torch.manual_seed(0)
model, history = nn.Linear(16, 8), []
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
is_pruned = torch.arange(128).view(8, 16) % 7 < 3
with torch.no_grad():
    model.weight[is_pruned] = 0.0
x = torch.randn(64, 16)
y = x[:, :8].cumsum(1)
for _ in range(8):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():  # +
        model.weight[is_pruned] = 0.0  # +
    history.append(loss.item())
print("loss", history[0], history[-1])
