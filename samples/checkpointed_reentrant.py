"""Reentrant checkpointing hides each block behind one node: its graph is built, and run, inside backward.

Try: gradinspect trace samples/checkpointed_reentrant.py
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
blocks = nn.ModuleList(nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)) for _ in range(4))
head = nn.Linear(64, 1)

x = torch.randn(16, 64, requires_grad=True)
hidden = x
for block in blocks:
    hidden = hidden + checkpoint(block, hidden, use_reentrant=True)
loss = head(hidden).square().mean()
loss.backward()

print(f"loss {loss.item():.4f}")
print("parameters with a gradient:", sum(p.grad is not None for p in blocks.parameters()))
