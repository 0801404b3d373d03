"""Images and masks that are turned by one draw, and images of NumPy whose channels are moved."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
torch.manual_seed(0)


def example():
    picture = np.full((20, 24, 3), 0.2, dtype=np.float32)
    top, left = rng.integers(2, 10), rng.integers(2, 12)
    mask = np.zeros((1, 20, 24), dtype=np.float32)
    mask[:, top : top + 8, left : left + 8] = 1
    picture[top : top + 8, left : left + 8, rng.integers(3)] += 0.7
    image, mask = torch.from_numpy(picture.transpose(2, 0, 1).copy()), torch.from_numpy(mask)
    for axis in (-1, -2):
        if rng.random() < 0.5:
            image = image.flip(axis)
            mask = mask.flip(axis)
    shift = int(rng.integers(-3, 4))
    return torch.roll(image, shift, -1), torch.roll(mask, shift, -1)


model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(8):
    images, masks = (torch.stack(one) for one in zip(*[example() for _ in range(16)], strict=True))
    loss = nn.functional.binary_cross_entropy_with_logits(model(images), masks)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
