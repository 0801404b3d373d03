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


class Number(int, metaclass=Kind):
    """An argument of operators."""


class Sizes(list, metaclass=Kind):
    """A list of them."""


class Setting(metaclass=Kind):
    """An argument of a model and of a custom Function."""


class Weight(nn.Parameter, metaclass=type("KindOfParameter", (Kind, type(nn.Parameter)), {})):
    """A parameter."""


class Scale(torch.autograd.Function, metaclass=type("KindOfFunction", (Kind, type(torch.autograd.Function)), {})):
    """A custom Function."""

    @staticmethod
    def forward(ctx, inputs, setting, number, numbers):
        ctx.save_for_backward(inputs)
        ctx.setting, ctx.number = setting, number
        return inputs * number

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.number, None, None, None


class Head(nn.Linear):
    """Hands its setting on."""

    def forward(self, inputs, setting=None):
        outputs = Scale.apply(super().forward(inputs), setting, Number(2), Sizes([Number(1), inputs]))
        return outputs.sum(Number(1)).reshape(Sizes([Number(3), 1])) * weight


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
model, head, weight = Net(nn.Linear(4, 8), nn.Tanh()), Head(8, 1), Weight(torch.ones(1))
optimizer, bare = Steps([*model.parameters(), weight], lr=0.1, momentum=0.9), Bare(head.parameters())
counts.clear()
for _ in range(3):
    optimizer.zero_grad()
    head(model(torch.randn(3, 4)), setting=Setting()).pow(Number(2)).mean().backward()
    optimizer.step()
    bare.step()
report = "".join(f"{name} {number}\n" for name, number in sorted(counts.items()))
print(sum(parameter.sum().item() for parameter in head.parameters()).hex())
print(report, end="")
if "COUNTS_FILE" in os.environ:  # a verb may print in between
    Path(os.environ["COUNTS_FILE"]).write_text(report)
