# expect: GI369
# advice: Replace the step at stepped_without_its_scaler.py:16 by step(optimizer) of the GradScaler.
# lines: backward=15 step=16
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
x, losses = torch.randn(32, 8), []
for _ in range(20):
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    optimizer.step()  # -
    scaler.step(optimizer)  # +
    scaler.update()  # +
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
