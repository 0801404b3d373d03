"""The gradient of a root at 0 is NaN; after the step so are the weights, and with them both later losses."""

import torch
from torch import nn

torch.manual_seed(0)
model, other = nn.Linear(4, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.1)
for _ in range(4):
    x = torch.randn(8, 4)
    h = model(x)
    distance = ((h - h.detach()) ** 2).sum(1).sqrt()
    loss = distance.mean() + other(h).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    second = other(model(torch.randn(8, 4)).tanh()).mean()
    second.backward()

# expect: GI501 made=12 backward=15
# expect: GI363 cleared=14 backward=18 step=16
