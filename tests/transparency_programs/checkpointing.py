import fingerprint
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

torch.manual_seed(18)


class Block(nn.Module):
    runs = 0

    def __init__(self):
        super().__init__()
        self.linear, self.dropout = nn.Linear(8, 8), nn.Dropout(0.3)

    def forward(self, x):
        Block.runs += 1
        return x + self.dropout(torch.tanh(self.linear(x)))


blocks = nn.ModuleList(Block() for _ in range(3))
for use_reentrant in (False, True, False):
    h = torch.randn(4, 8, requires_grad=True)
    for block in blocks:
        h = checkpoint(block, h, use_reentrant=use_reentrant)
    h.square().mean().backward()
    print(use_reentrant, Block.runs)
out = checkpoint_sequential(nn.Sequential(*blocks), 2, torch.randn(2, 8), use_reentrant=False)
out.sum().backward()
print(Block.runs)
fingerprint.show(blocks)
