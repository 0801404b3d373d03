"""A head that is replaced between two trainings by one function; the model is gone when the program ends."""

import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 8), nn.ReLU())
        self.fc = nn.Linear(8, classes)

    def forward(self, x):
        return self.fc(self.features(x))


def fit(net, opt, classes):
    for _ in range(6):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(torch.randn(16, 6)), torch.randint(classes, (16,)))
        loss.backward()
        opt.step()


def main():
    net = Backbone(4)
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    fit(net, opt, 4)
    net.features.requires_grad_(False)
    net.fc = nn.Linear(8, 2)
    fit(net, opt, 2)


torch.manual_seed(0)
main()
# expect: GI361 optimizer=27 replaced=30 backward=21
