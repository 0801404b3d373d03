# expect: GI001
# advice: Call unscale_() once for each step, and update() after the step.
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
x = torch.randn(32, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
history = []
for _ in range(20):
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.unscale_(optimizer)  # -
    nn.utils.clip_grad_value_(net.parameters(), 0.5)
    scaler.step(optimizer)
    scaler.update()
    history.append(loss.item())
print("loss", history[0], history[-1])
