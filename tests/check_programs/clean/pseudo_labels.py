"""FixMatch: hard pseudo-labels by argmax under no_grad, and the unsure ones masked out of the loss."""

import torch
import torch.nn.functional as F
from torch import nn


def weak(x):
    return x + 0.01 * torch.randn_like(x)


def strong(x):
    return F.dropout(x, 0.3) + 0.2 * torch.randn_like(x)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, nesterov=True, momentum=0.9)
for _ in range(4):
    labelled, unlabelled = torch.randn(8, 6), torch.randn(32, 6)
    target = (labelled[:, 0] > 0).long()
    supervised = F.cross_entropy(model(weak(labelled)), target)
    with torch.no_grad():
        confidence, pseudo = model(weak(unlabelled)).softmax(-1).max(-1)
        mask = (confidence > 0.55).float()
    consistency = (F.cross_entropy(model(strong(unlabelled)), pseudo, reduction="none") * mask).mean()
    loss = supervised + 1.0 * consistency
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex(), mask.mean().item())
