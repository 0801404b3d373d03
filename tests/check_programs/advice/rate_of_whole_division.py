# expect: GI368
# advice: Pass a positive learning rate at rate_of_whole_division.py:9.
# lines: optimizer=9 step=16
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1 // 10)  # -
optimizer = torch.optim.SGD(model.parameters(), lr=1 / 10)  # +
x, losses = torch.randn(32, 8), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
