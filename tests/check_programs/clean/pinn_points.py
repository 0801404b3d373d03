"""Collocation points that are an attribute of the model and require grad: inputs, which nobody trains."""

import torch
from torch import nn


class Pinn(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
        self.points = torch.linspace(0, 1, 9).unsqueeze(1).requires_grad_(True)

    def forward(self):
        u = self.net(self.points)
        (du,) = torch.autograd.grad(u.sum(), self.points, create_graph=True)
        return (du + u).square().mean()


torch.manual_seed(0)
model = Pinn()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    optimizer.zero_grad()
    loss = model()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
# options: --steps 3
