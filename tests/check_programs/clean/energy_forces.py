"""A potential fitted to forces: softplus is differentiated twice, and the last bias is fitted through the energy."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(1, 12), nn.Linear(12, 1)

    def forward(self, positions):
        gaps = (positions[:, 1:] - positions[:, :-1]).unsqueeze(-1)
        return self.outer(F.softplus(self.inner(gaps))).sum((1, 2))


def spring(positions):
    gaps = positions[:, 1:] - positions[:, :-1] - 1
    forces = F.pad(gaps, (0, 1)) - F.pad(gaps, (1, 0))
    return 0.5 * gaps.square().sum(1), forces


model = Potential()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(3):
    positions = torch.arange(4.0) + 0.3 * torch.randn(8, 4)
    true_energy, true_forces = spring(positions)
    positions.requires_grad_(True)
    energy = model(positions)
    forces = -torch.autograd.grad(energy.sum(), positions, create_graph=True)[0]
    loss = F.mse_loss(energy, true_energy) + F.mse_loss(forces, true_forces)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
