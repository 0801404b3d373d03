"""Edge lengths of a graph that has self loops: the root's argument is replaced before the root, not after."""

import torch
from torch import nn

torch.manual_seed(0)
source, target = torch.tensor([[0, 1, 2, 3, 0, 2], [1, 2, 3, 0, 0, 2]])


def safe_norm(v, dim=-1):
    squared = (v * v).sum(dim)
    is_zero = squared == 0
    return squared.masked_fill(is_zero, 1.0).sqrt().masked_fill(is_zero, 0.0)


class EdgeEnergy(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = nn.Linear(3, 3)
        self.readout = nn.Sequential(nn.Linear(1, 8), nn.Softplus(), nn.Linear(8, 1))

    def forward(self, positions):
        moved = positions + self.shift(positions)
        length = safe_norm(moved[source] - moved[target])
        return self.readout(length.unsqueeze(-1)).sum()


model = EdgeEnergy()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for energy in (0.5, -1.0, 2.0):
    loss = (model(torch.randn(4, 3)) - energy).pow(2)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
