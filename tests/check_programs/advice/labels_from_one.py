# expect: GI001
# why: stars is int64 [64], from 1 to 5
# advice: Count labels from 0, and give the model as many outputs as there are labels: of n, the greatest is n - 1.
# lines: failed=21
"""One to five stars, as they stand in the table."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
net = nn.Linear(6, 5)
x = torch.randn(64, 6)
stars = 1 + (x[:, 0] * 2).clamp(-2, 2).add(2).long()  # -
stars = (x[:, 0] * 2).clamp(-2, 2).add(2).long()  # +
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
history = []
for _ in range(10):
    # The classes are the stars.
    scores = net(x)
    loss = functional.cross_entropy(scores, stars)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
