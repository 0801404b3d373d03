# expect: GI380
# advice: Which line between clipped_to_nothing.py:16 and clipped_to_nothing.py:18 makes them zero?
# lines: backward=16 optimizer=9 step=18
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
limit = 5 // 10  # -
limit = 5 / 10  # +
x, losses = torch.randn(32, 8), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), limit)
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
