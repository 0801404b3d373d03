"""A perceptual loss through a network that nobody froze, made after the optimizer, and a teacher hidden in a list."""

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, teacher):
        super().__init__()
        self.up = nn.ConvTranspose2d(2, 3, 2, 2)
        self.teacher = [teacher]  # not one of our parameters

    def forward(self, z):
        image = self.up(z)
        return image, self.teacher[0](image)


torch.manual_seed(0)
generator = Generator(nn.Conv2d(3, 2, 3).eval())
optimizer = torch.optim.Adam(generator.parameters())
vgg = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5)).eval()
for _ in range(3):
    image, score = generator(torch.randn(2, 2, 4, 4))
    loss = (vgg(image) - vgg(torch.randn(2, 3, 8, 8))).square().mean() - score.mean() * 0.1
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex())
# options: --steps 3
