"""The running loss of an epoch is a tensor with a history, in a trainer."""

import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.model = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.epoch_loss = 0.0

    def step(self, x):
        loss = self.model(x).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.epoch_loss += loss


torch.manual_seed(0)
trainer = Trainer()
for _ in range(3):
    trainer.step(torch.randn(8, 4))
# expect: GI801 stored=18 backward=16
