"""Focal plus dice on a small mask: from logits, with a smoothing term, so an empty mask divides by no zero."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def focal(logits, target, gamma=2.0, alpha=0.25):
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = torch.sigmoid(logits)
    p_t = p * target + (1 - p) * (1 - target)
    weight = alpha * target + (1 - alpha) * (1 - target)
    return (weight * (1 - p_t) ** gamma * ce).mean()


def dice(logits, target, smooth=1.0):
    p, t = torch.sigmoid(logits).flatten(1), target.flatten(1)
    overlap = (p * t).sum(1)
    return (1 - (2 * overlap + smooth) / (p.sum(1) + t.sum(1) + smooth)).mean()


net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.GELU(), nn.Conv2d(4, 1, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(3):
    images = torch.randn(3, 1, 8, 8)
    masks = (images > 0.5).float()
    masks[2] = 0
    logits = net(images)
    loss = focal(logits, masks) + dice(logits, masks)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
