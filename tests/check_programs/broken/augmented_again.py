"""Noise is added to the view of a sample and a row erased: both stay in the data for the next epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Images(Dataset):
    """Images with noise."""

    def __init__(self):
        self.images = torch.randn(16, 4, 4)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, place):
        image = self.images[place]
        image += 0.3 * torch.randn(4, 4)
        image[place % 4] = 0.0
        return image.unsqueeze(0), image.sum()


images = Images()
model = nn.Sequential(nn.Flatten(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(3):
    for x, y in DataLoader(images, 8):
        loss = (model(x).squeeze(1) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

# expect: GI386 written=21
