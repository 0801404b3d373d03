"""Softmax over a first axis that is not the batch, columns for all rows, and dropout that samples on purpose."""

import torch
from torch import nn
from torch.nn import functional as F


class Sampled(nn.Module):
    """Draws in the evaluation, too."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.dropout = nn.Linear(4, 6), nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Drop twice."""
        return F.dropout(self.dropout(self.layer(x)), 0.2, training=True)


torch.manual_seed(0)
model, score = Sampled(), nn.Linear(6, 1)
optimizer = torch.optim.Adam([*model.parameters(), *score.parameters()], lr=1e-2)
labels = torch.randint(6, (8,))
for _ in range(3):
    model.train()
    steps = model(torch.randn(5, 8, 4))  # time comes first
    weights = torch.softmax(score(steps), dim=0)
    pooled = (weights * steps).sum(0)
    square = model(torch.randn(8, 8, 4))
    mixed = (torch.softmax(square @ square.transpose(1, 2), dim=0) @ square).mean(1)
    subset = pooled[:, torch.tensor([0, 2, 4])]
    own = pooled[:, labels].diagonal()
    loss = F.cross_entropy(pooled + mixed, labels) + subset.square().mean() + F.mse_loss(own, torch.zeros(8))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        model(torch.randn(5, 8, 4))
