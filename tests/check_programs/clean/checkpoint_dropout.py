"""Residual blocks with dropout under non-reentrant checkpoints: the recomputation replays the same random masks."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        return x + self.drop(self.down(torch.relu(self.up(self.norm(x)))))


tail = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.1), nn.Linear(8, 2))
model = nn.Sequential(Block(8), Block(8), tail)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(3):
    x = torch.randn(6, 8)
    hidden = x
    for block in model[:2]:
        hidden = checkpoint(block, hidden, use_reentrant=False)
    logits = checkpoint_sequential(tail, 2, hidden, use_reentrant=False)
    loss = nn.functional.cross_entropy(logits, (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
