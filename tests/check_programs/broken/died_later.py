"""The learning rate is so high that the first steps push every unit below zero, for good."""

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 8), nn.Linear(8, 1)
nn.init.constant_(head.weight, 1.0)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=50.0)
for _ in range(8):
    hidden = torch.relu(body(torch.rand(16, 4)))
    loss = head(hidden).mean() + head.bias.square().sum()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(body.parameters(), 1.0)
    head.weight.grad.zero_()
    head.bias.grad.zero_()
    optimizer.step()

# expect: GI601 zeroed=11
# expect: GI380 backward=14 step=18
