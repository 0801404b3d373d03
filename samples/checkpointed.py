"""Activation checkpointing: the blocks' nodes are in the graph, their saved tensors are made again in backward.

Try: gradinspect saved samples/checkpointed.py
"""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
blocks = nn.ModuleList(nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)) for _ in range(4))
head = nn.Linear(64, 1)

x = torch.randn(16, 64)
for block in blocks:
    x = x + checkpoint(block, x, use_reentrant=False)
loss = head(x).square().mean()
loss.backward()

print(f"loss {loss.item():.4f}")
