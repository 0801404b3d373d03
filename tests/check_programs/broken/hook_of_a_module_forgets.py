"""A full backward hook of a module that scales the gradient by a number that stays 0."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scale = 0.0
model[1].register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * scale,))
for _ in range(3):
    x = torch.randn(16, 4)
    loss = (model(x) - x[:, :1]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI601 zeroed=13 backward=15
