"""A loss of a Jacobian that torch.autograd.functional computes without create_graph, so the field does not learn."""

import torch
from torch import nn

torch.manual_seed(0)
field, scale = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3)), nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([*field.parameters(), scale], lr=0.1)
for _ in range(3):
    jacobian = torch.autograd.functional.jacobian(field, torch.randn(3))
    loss = (jacobian * scale - torch.eye(3)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# expect: GI402 detached=10
