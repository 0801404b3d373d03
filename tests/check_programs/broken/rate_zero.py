"""The learning rate of a configuration, divided as integers."""

import torch
from torch import nn

CONFIG = {"batch_size": 16, "base_batch": 256}
torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.Adam([{"params": [model.weight]}, {"params": [model.bias]}], lr=CONFIG["batch_size"] // 256)
for _ in range(3):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(2, (8,)))
    loss.backward()
    optimizer.step()
# expect: GI368 optimizer=9 step=14
