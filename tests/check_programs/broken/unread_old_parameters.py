"""The model is made anew after the optimizer was, which keeps the old one's parameters."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
old = model
model = nn.Linear(4, 2)
for _ in range(2):
    loss = model(torch.randn(3, 4)).pow(2).mean()
    model.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI361 optimizer=8 backward=14
