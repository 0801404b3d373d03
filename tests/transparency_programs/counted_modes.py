"""Modes of torch are replaced by those that count, a mode of the program logs, and inputs are watched until they die."""

import collections
import functools
import weakref

import fingerprint
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

counts = collections.Counter()
called, ended = [], []


def count(kind, name):
    original = getattr(kind, name)

    @functools.wraps(original)
    def wrapper(*args, **kwargs):
        counts[f"{kind.__name__}.{name}"] += 1
        return original(*args, **kwargs)

    setattr(kind, name, wrapper)


for kind in (TorchFunctionMode, TorchDispatchMode):
    for name in ("__init__", "__enter__", "__exit__"):
        count(kind, name)


class Logged(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        called.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def step():
    optimizer.zero_grad()
    x = torch.randn(3, 4, requires_grad=True)
    weakref.finalize(x, ended.append, "input")
    checkpoint(model, x, use_reentrant=False).pow(2).mean().backward()


for _ in range(3):
    step()  # the optimizer is there, and does not step
    ended.append("step")
optimizer.step()
with Logged():
    for _ in range(3):
        step()
        optimizer.step()
print(*ended)
print(*sorted(counts.items()))
print(len(called), *called)
fingerprint.show(model)
