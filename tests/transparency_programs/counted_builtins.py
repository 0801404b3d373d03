"""Functions of builtins are replaced by those that count the calls of our code."""

import builtins
import collections
import os
import sys
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

counts = collections.Counter()
get_frame = sys._getframe
LEFT = ("super", "__build_class__", "locals", "globals", "vars", "dir", "eval", "exec")  # they look at their caller


def count(name):
    original = getattr(builtins, name)

    def wrapper(*args, **kwargs):
        if get_frame(1).f_globals["__name__"].partition(".")[0] == "gradinspect":
            counts[name] += 1
        return original(*args, **kwargs)

    setattr(builtins, name, wrapper)


class Double(torch.autograd.Function):
    """A custom Function."""

    @staticmethod
    def forward(ctx, inputs):
        return inputs * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
data = DataLoader(TensorDataset(torch.randn(9, 4)), batch_size=3)
functions = [name for name, value in vars(builtins).items() if type(value) in (type(len), type(count))]
for name in functions:
    if name not in LEFT:
        count(name)
for _ in range(2):
    for (inputs,) in data:
        optimizer.zero_grad()
        Double.apply(model(inputs)).pow(2).mean().backward()
        optimizer.step()
print(sum(parameter.sum().item() for parameter in model.parameters()).hex())
report = "".join(f"{name} {number}\n" for name, number in sorted(counts.items()))
print(report, end="")
if "COUNTS_FILE" in os.environ:  # a verb may print in between
    Path(os.environ["COUNTS_FILE"]).write_text(report)
