"""Transfer learning: the classifier is replaced after the optimizer was made."""

import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.fc = nn.Linear(4, classes)

    def forward(self, x):
        return self.fc(self.features(x))


torch.manual_seed(0)
net = Backbone(10)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
net.fc = nn.Linear(4, 2)
criterion = nn.CrossEntropyLoss()
for _ in range(2):
    opt.zero_grad()
    loss = criterion(net(torch.randn(4, 3, 8, 8)), torch.randint(2, (4,)))
    loss.backward()
    opt.step()
# expect: GI361 optimizer=19 replaced=20 backward=25
