"""A linear probe on features taken under no_grad, validated after each step: only the probe is meant to learn."""

import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
backbone.eval()
probe = nn.Linear(16, 3)
optimizer = torch.optim.SGD(probe.parameters(), lr=0.5)


@torch.no_grad()
def features(images):
    return backbone(images)


@torch.inference_mode()
def accuracy(images, labels):
    probe.eval()
    hits = (probe(backbone(images)).argmax(1) == labels).float().mean().item()
    probe.train()
    return hits


held_out = torch.randn(12, 1, 8, 8), torch.randint(3, (12,))
for _ in range(3):
    images, labels = torch.randn(10, 1, 8, 8), torch.randint(3, (10,))
    loss = nn.functional.cross_entropy(probe(features(images)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex(), accuracy(*held_out))
