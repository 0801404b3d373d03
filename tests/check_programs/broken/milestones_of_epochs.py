"""Milestones that are epochs are counted in batches."""

import torch
from torch import nn

torch.manual_seed(0)
PLAN = {"epochs": 8, "drops": (2, 4), "factor": 0.2}
x = torch.randn(96, 5)
y = (x[:, 0] * x[:, 1] > 0).long()


class Trainer:
    def __init__(self, plan):
        self.plan = plan
        self.net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 2))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.5, momentum=0.9)
        self.rate = torch.optim.lr_scheduler.MultiStepLR(self.opt, plan["drops"], plan["factor"])

    def batch(self, rows):
        loss = nn.functional.cross_entropy(self.net(x[rows]), y[rows])
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.rate.step()
        return loss.item()

    def fit(self):
        for epoch in range(self.plan["epochs"]):
            losses = [self.batch(rows) for rows in torch.randperm(96).split(16)]
            print(epoch, sum(losses) / len(losses))


Trainer(PLAN).fit()
# expect: GI393 scheduler=17 stepped=24
