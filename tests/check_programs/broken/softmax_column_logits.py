"""nn.CrossEntropyLoss on a model with one output: the loss is 0 from the start."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(6, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    logits = net(torch.randn(8, 6))
    loss = nn.CrossEntropyLoss()(logits, torch.zeros(8, dtype=torch.long))
    loss.backward()
    optimizer.step()
# expect: GI353 softmax=12 backward=13
