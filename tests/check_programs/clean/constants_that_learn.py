"""Constants before a random head, scales of one value, prototypes of ones, and a toy whose rows are alike."""

import torch
from torch import nn

torch.manual_seed(0)


class Scaled(nn.Module):
    """A residual block with a scale for each channel."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Conv1d(6, 6, 3, padding=1)
        self.scale = nn.Parameter(torch.full((6, 1), 0.1))

    def forward(self, x):
        return x + self.scale * torch.relu(self.mix(x))


constant = nn.Linear(4, 6)
nn.init.constant_(constant.weight, 0.2)
model = nn.Sequential(constant, nn.Tanh(), nn.Unflatten(1, (6, 1)), Scaled(), nn.Flatten(), nn.Linear(6, 3))
prototypes = nn.Parameter(torch.ones(3, 3))
optimizer = torch.optim.Adam([*model.parameters(), prototypes], lr=0.01)
for _ in range(8):
    x, y = torch.randn(16, 4), torch.randint(3, (16,))
    loss = nn.functional.cross_entropy(-torch.cdist(model(x), prototypes), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

bowl = torch.ones(3, 2, requires_grad=True)
descent = torch.optim.SGD([bowl], lr=0.1)
for _ in range(8):
    descent.zero_grad()
    bowl.square().sum().backward()
    descent.step()
