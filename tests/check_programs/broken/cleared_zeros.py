"""The gradients are set to zeros by the model's zero_grad, right before the step."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.GRU(3, 5, batch_first=True)
out = nn.Linear(5, 1)
optimizer = torch.optim.SGD([*net.parameters(), *out.parameters()], lr=0.1)
for _ in range(2):
    h, _ = net(torch.randn(2, 6, 3))
    loss = out(h[:, -1]).pow(2).mean()
    loss.backward()
    for part in (net, out):
        part.zero_grad(set_to_none=False)
    optimizer.step()
# expect: GI363 backward=13 cleared=15 step=16
