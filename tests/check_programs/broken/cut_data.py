"""The embedding is normalised through .data, as old code does it."""

import torch
from torch import nn


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(6, 4)
        self.right = nn.Linear(6, 4)

    def forward(self, a, b):
        left = self.left(a)
        right = self.right(b).data
        right = right / right.norm(dim=-1, keepdim=True)
        return (left * right).sum(-1)


torch.manual_seed(0)
model = Matcher()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    loss = -model(torch.randn(5, 6), torch.randn(5, 6)).sigmoid().log().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
# expect: GI301 read=15 detached=15 used=16 backward=26 step=27
