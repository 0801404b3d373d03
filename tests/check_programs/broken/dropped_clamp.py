"""Rectified features whose result is not taken, and weights that are masked without effect."""

import torch
import torch.nn.functional as F
from torch import nn


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.value = nn.Linear(4, 1), nn.Linear(4, 4)

    def forward(self, x, mask):
        scores = self.score(x).squeeze(-1)
        scores.masked_fill(mask, -1e9)
        values = self.value(x)
        F.relu(values)
        return (scores.softmax(-1).unsqueeze(-1) * values).sum(1)


torch.manual_seed(0)
model = Attend()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    mask = torch.tensor([[False, False, True]] * 5)
    loss = (model(torch.randn(5, 3, 4), mask) - 1).square().mean()
    loss.backward()
    optimizer.step()
# expect: GI307 called=15 backward=28
# expect: GI307 called=17 backward=28
