# expect: GI001
# why: Class values must be smaller than num_classes
# advice: Count classes from 0, or raise num_classes at one_class_too_few.py:14: of n classes, the last is n - 1.
# lines: failed=14
"""Four classes, of which three were counted."""

import torch
from torch import nn
from torch.nn import functional

torch.manual_seed(0)
net = nn.Linear(6, 4)
x = torch.randn(64, 6)
wanted = functional.one_hot(torch.arange(64) % 4, 3).float()  # -
wanted = functional.one_hot(torch.arange(64) % 4, 4).float()  # +
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
history = []
for _ in range(10):
    loss = functional.cross_entropy(net(x), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print("loss", history[0], history[-1])
