# expect: GI001
# why: optimizer can only optimize Tensors, but one of the params is torch.nn.modules.linear.Linear
# advice: Pass the parameters of the module, parameters(), and not the module.
# lines: failed=12
"""Layers that are given to the optimizer."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1))
optimizer = torch.optim.SGD([net[0], net[1]], lr=0.1)  # -
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  # +
x = torch.randn(64, 6)
history = []
for _ in range(10):
    loss = (net(x) - x.mean(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
