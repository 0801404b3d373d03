"""A spatial transformer that starts at the identity: its zero weights are an initial value, not a dead layer."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class STN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, stride=2), nn.ReLU(), nn.Flatten())
        self.theta = nn.Linear(36, 6)
        nn.init.zeros_(self.theta.weight)
        with torch.no_grad():
            self.theta.bias.copy_(torch.tensor([1.0, 0, 0, 0, 1, 0]))
        self.classify = nn.Linear(64, 3)

    def forward(self, x):
        theta = self.theta(self.features(x)).view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        x = F.grid_sample(x, grid, padding_mode="border", align_corners=False)
        return self.classify(x.flatten(1))


model = STN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(3):
    loss = F.cross_entropy(model(torch.randn(5, 1, 8, 8)), torch.tensor([0, 1, 2, 0, 1]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
