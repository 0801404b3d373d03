# expect: GI001
# advice: The GradScaler has seen no step before updated_without_a_step.py:19: call its step(optimizer) in place of
# advice: optimizer.step().
# lines: failed=19
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
    scaler.update()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
