"""One head per task in a plain dict of a submodule. The loop is in a function."""

import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.by_task = {task: nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)) for task in tasks}

    def forward(self, h):
        return torch.cat([head(self.norm(h)) for head in self.by_task.values()], dim=1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.heads = Heads(["price", "weight"])

    def forward(self, x):
        return self.heads(self.body(x).tanh())


def train(model, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        loss = nn.functional.mse_loss(model(torch.randn(6, 4)), torch.zeros(6, 2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
train(Net(), 2)
# expect: GI361 optimizer=28 made=11 backward=32
