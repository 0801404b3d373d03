"""A stack of encoder layers that is one layer: nn.ModuleList of a multiplied list."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, depth):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.layers = nn.ModuleList([layer] * depth)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.out(x.mean(1))


torch.manual_seed(0)
model = Encoder(4)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(3, 5, 8)), torch.randint(2, (3,)))
    loss.backward()
    optimizer.step()
# expect: GI372 made=11 backward=26
