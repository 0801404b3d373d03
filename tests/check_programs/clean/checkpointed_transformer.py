"""A checkpointed transformer with dropout, inner checkpoints, a list of inputs, autocast, and a second backward."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

torch.manual_seed(0)
layers = nn.ModuleList([nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True) for _ in range(2)])
tail = nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(8, 1))
optimizer = torch.optim.AdamW([*layers.parameters(), *tail.parameters()])


def both(x):
    x = checkpoint(layers[0], x, use_reentrant=False)
    if torch.rand(()) < 0.5:
        x = x * 1.1
    return checkpoint(layers[1], x, use_reentrant=False)


for step in range(3):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=step == 2):
        h = checkpoint(both, torch.randn(2, 5, 8), use_reentrant=False)
        out = checkpoint_sequential(tail, 2, h, use_reentrant=False)
    loss = out.float().pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=step == 0)
    if step == 0:
        loss.backward()
    optimizer.step()
    print(loss.item().hex())
