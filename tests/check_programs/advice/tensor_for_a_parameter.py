# expect: GI001
# why: cannot assign 'torch.FloatTensor' as parameter 'weight'
# advice: Copy its values into the parameter that is there, under torch.no_grad(), or assign an nn.Parameter.
# lines: failed=12
"""A layer that begins with an average."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(6, 1)
net.weight = torch.full((1, 6), 0.5)  # -
with torch.no_grad():  # +
    net.weight.copy_(torch.full((1, 6), 0.5))  # +
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(64, 6)
history = []
for _ in range(10):
    loss = (net(x) - x.mean(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
