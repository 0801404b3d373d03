"""A small ResNet: skip connections make nodes that two paths reach, and batch norm keeps most of the bytes.

Try: gradinspect export samples/resnet.py -o resnet.svg
"""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """Two convolutions and a skip connection, which is a convolution where the shape changes."""

    def __init__(self, in_channels, out_channels, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, out_channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(out_channels)
        self.conv2 = nn.Conv2d(out_channels, out_channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(out_channels)
        self.skip = nn.Identity()
        if stride != 1 or in_channels != out_channels:
            self.skip = nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)

    def forward(self, x):
        out = F.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        return F.relu(out + self.skip(x))


class ResNet(nn.Module):
    def __init__(self, widths=(16, 32, 64), num_classes=10):
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], 3, padding=1, bias=False)
        stages = []
        in_channels = widths[0]
        for width in widths:
            stride = 1 if width == in_channels else 2
            stages.append(nn.Sequential(Block(in_channels, width, stride), Block(width, width)))
            in_channels = width
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(in_channels, num_classes)

    def forward(self, images):
        x = self.stages(self.stem(images))
        return self.head(x.mean(dim=(2, 3)))


torch.manual_seed(0)
model = ResNet()
images = torch.randn(8, 3, 32, 32)
labels = torch.randint(10, (8,))
loss = F.cross_entropy(model(images), labels)
loss.backward()

print(f"loss {loss.item():.4f}")
