"""A Parameter is scaled before it is assigned, so the module has a plain tensor."""

import torch
from torch import nn


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.places = nn.Parameter(torch.randn(5, 4)) / 4
        self.head = nn.Linear(4, 1)

    def forward(self, x):
        return self.head(x + self.places)


torch.manual_seed(0)
table = Table()
optimizer = torch.optim.SGD(table.parameters(), lr=0.1)
for _ in range(3):
    loss = table(torch.randn(8, 5, 4)).square().mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
# expect: GI361 optimizer=19 made=10 backward=23
