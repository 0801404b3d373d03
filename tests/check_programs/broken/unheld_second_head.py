# expect: GI361 optimizer=23 backward=31
"""The head of a second task is in no optimizer; the calls of the first task were only counted in the end."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU())
        self.heads = nn.ModuleDict({"kind": nn.Linear(32, 4), "color": nn.Linear(32, 3)})

    def forward(self, x, task):
        return self.heads[task](self.body(x))


model = TwoTasks()
trained = [*model.body.parameters(), *model.heads["kind"].parameters()]
optimizer = torch.optim.Adam(trained, lr=1e-3)


def fit(task, num_steps, num_classes):
    for _ in range(num_steps):
        target = torch.randint(num_classes, (32,))
        loss = F.cross_entropy(model(torch.randn(32, 16) + F.one_hot(target, 16), task), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


for task, num_steps, num_classes in (("kind", 75, 4), ("color", 40, 3)):
    fit(task, num_steps, num_classes)
