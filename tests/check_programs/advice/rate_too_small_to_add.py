# expect: GI380
# advice: Choose a larger learning rate for them at rate_too_small_to_add.py:9.
# lines: backward=15 optimizer=9 step=16
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-12)  # -
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)  # +
x, losses = torch.randn(32, 8), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
