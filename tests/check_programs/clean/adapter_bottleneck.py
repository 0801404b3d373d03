"""Adapters in a frozen block: the up projection starts at zero, so the first gradient of `down` is zero, by design."""

import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, dim, bottleneck):
        super().__init__()
        self.down = nn.Linear(dim, bottleneck)
        self.up = nn.Linear(bottleneck, dim)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x):
        return x + self.up(nn.functional.gelu(self.down(x)))


torch.manual_seed(0)
block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
block.requires_grad_(False)
adapter, head = Adapter(8, 3), nn.Linear(8, 2)
trainable = [*adapter.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(trainable, lr=1e-2)

for _ in range(3):
    tokens, label = torch.randn(4, 5, 8), torch.randint(2, (4,))
    pooled = adapter(block(tokens)).mean(1)
    loss = nn.functional.cross_entropy(head(pooled), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
