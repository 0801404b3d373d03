# expect: GI361
# why: folds_of_one_optimizer.py:19 makes new ones, and self.opt still holds those that had these names before.
# advice: After folds_of_one_optimizer.py:19, make self.opt again, of the new ones. Or write the new values into those
# advice: into those that it holds, under torch.no_grad(), by copy_().
# lines: optimizer=16 replaced=19 backward=27
import copy

import torch
from torch import nn


class Runner:
    def __init__(self):
        self.base = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
        self.model = copy.deepcopy(self.base)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=0.01)

    def next_fold(self):
        self.model = copy.deepcopy(self.base)
        self.opt = torch.optim.Adam(self.model.parameters(), lr=0.01)  # +

    def fit(self, x, y):
        losses = []
        for _ in range(12):
            self.opt.zero_grad()
            loss = (self.model(x) - y).square().mean()
            loss.backward()
            self.opt.step()
            losses.append(loss.item())
        return losses


torch.manual_seed(0)
x = torch.randn(64, 5)
runner = Runner()
runner.fit(x, x.sum(1, keepdim=True))
runner.next_fold()
losses = runner.fit(x, x.sum(1, keepdim=True))
print("loss", losses[0], losses[-1])
