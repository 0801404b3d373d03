"""Classes and objects count who compares them, hashes them or asks for their truth; one optimizer was never set up."""

import collections
import os
from pathlib import Path

import torch
from torch import nn

counts = collections.Counter()


class Kind(type):
    """The class of a class of modules."""

    def __eq__(cls, other):
        counts["kind =="] += 1
        return cls is other

    def __hash__(cls):
        counts["hash(kind)"] += 1
        return 7


class Net(nn.Sequential, metaclass=Kind):
    """A model that is false."""

    def __bool__(self):
        counts["bool(model)"] += 1
        return False


class Steps(torch.optim.SGD):
    """An optimizer that cannot be a key."""

    __hash__ = None

    def __eq__(self, other):
        counts["optimizer =="] += 1
        return self is other

    def __bool__(self):
        counts["bool(optimizer)"] += 1
        return False


class Bare(torch.optim.Optimizer):
    """An optimizer that torch knows nothing of."""

    def __init__(self, parameters):
        self.parameters = list(parameters)

    def step(self, closure=None):
        with torch.no_grad():
            for parameter in self.parameters:
                parameter.sub_(0.1 * parameter.grad)
                parameter.grad = None


torch.manual_seed(0)
model, head = Net(nn.Linear(4, 8), nn.Tanh()), nn.Linear(8, 1)
optimizer, bare = Steps(model.parameters(), lr=0.1, momentum=0.9), Bare(head.parameters())
counts.clear()
for _ in range(3):
    optimizer.zero_grad()
    head(model(torch.randn(3, 4))).pow(2).mean().backward()
    optimizer.step()
    bare.step()
report = "".join(f"{name} {number}\n" for name, number in sorted(counts.items()))
print(sum(parameter.sum().item() for parameter in head.parameters()).hex())
print(report, end="")
if "COUNTS_FILE" in os.environ:  # a verb may print in between
    Path(os.environ["COUNTS_FILE"]).write_text(report)
