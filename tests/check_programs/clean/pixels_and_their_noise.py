"""Bytes that are divided by 255 once, noise and steps of a 255th, dark pictures, and masks that are 0 and 1."""

import torch
from torch import nn

torch.manual_seed(0)
pictures = torch.randint(0, 256, (60, 3, 6, 6), dtype=torch.uint8)
labels = torch.randint(0, 3, (60,))
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
small = nn.Linear(108, 3)
optimizer = torch.optim.SGD([*model.parameters(), *small.parameters()], lr=0.01)
for part in torch.arange(60).split(12):
    x = pictures[part].float().div_(255)
    x = x + (torch.rand_like(x) - 0.5) / 255  # between two bytes
    x = x + (torch.rand_like(x) * 2 - 1) * (8 / 255)
    dark = (pictures[part] // 40).float() / 255
    mask = (x > 0.5).float() / 255 * 255
    loss = nn.functional.cross_entropy(model(x * mask), labels[part])
    loss = loss + nn.functional.cross_entropy(small(dark.flatten(1)), labels[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
