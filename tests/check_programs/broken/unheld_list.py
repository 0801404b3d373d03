"""The hidden layers are in a plain list, so the optimizer has only the first and the last."""

import torch
from torch import nn


class MLP(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.first = nn.Linear(6, width)
        self.hidden = []
        for _ in range(depth):
            self.hidden.append(nn.Linear(width, width))
        self.last = nn.Linear(width, 2)

    def forward(self, x):
        x = torch.relu(self.first(x))
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.last(x)


torch.manual_seed(0)
model = MLP(16, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(2):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(8, 6)), torch.randint(2, (8,)))
    loss.backward()
    optimizer.step()
# expect: GI361 optimizer=25 made=13 backward=29
