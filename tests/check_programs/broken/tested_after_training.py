# expect: GI394 called=23 evaluated=46
"""A classifier of images that is tested one by one after a long training, and compared behind torch.no_grad()."""

import torch
from torch import nn
from torch.nn import functional as F


def stripes(number):
    labels = torch.arange(number) % 2
    images = torch.rand(number, 1, 8, 8) * 0.5
    images[labels == 1, :, ::2] += 0.5
    return images, labels


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        x = F.relu(self.norm(self.conv(x)))
        return self.head(x.amax(dim=(2, 3)))


def predict(net, images):
    with torch.no_grad():
        return torch.cat([net(image.unsqueeze(0)).argmax(1) for image in images])


torch.manual_seed(0)
images, labels = stripes(256)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
net.train()
for _ in range(12):
    for rows in torch.randperm(256).split(32):
        loss = F.cross_entropy(net(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

others, right = stripes(40)
chosen = predict(net, others)
print("accuracy", (chosen == right).float().mean().item())
