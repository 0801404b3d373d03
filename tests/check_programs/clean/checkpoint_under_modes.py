"""Checkpointed blocks under modes of the program that are active in the forward pass, and not in the recomputation."""

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
calls = {}


class Counting(TorchFunctionMode):
    """Counts functions, in a method of its own."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return self.counted(func, args, kwargs or {})

    def counted(self, func, args, kwargs):
        calls[func] = calls.get(func, 0) + 1
        return func(*args, **kwargs)


class CountingOperators(TorchDispatchMode):
    """Counts operators."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        calls[func] = calls.get(func, 0) + 1
        return func(*args, **(kwargs or {}))


model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


def block(x):
    hidden = model[0](x)
    return model[2](model[1](hidden))


for modes in ((Counting(),), (CountingOperators(),), (Counting(), CountingOperators())):
    for _ in range(2):
        x = torch.randn(6, 4)
        for mode in modes:
            mode.__enter__()
        loss = (checkpoint(block, x, use_reentrant=False) - x.sum(1, keepdim=True)).pow(2).mean()
        for mode in reversed(modes):
            mode.__exit__(None, None, None)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item().hex())
