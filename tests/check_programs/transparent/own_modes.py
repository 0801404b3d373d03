"""Modes of the program's own, around and inside backward: what they are shown, and how many there are."""

import torch
from torch.overrides import TorchFunctionMode


class Names(TorchFunctionMode):
    """Prints the name of each torch function."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        names.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


class Logged(torch.Tensor):
    """Writes down each torch function that it meets."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        names.append("logged " + getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs)


names = []
weight = torch.nn.Parameter(torch.ones(3))
logged = torch.ones(3).as_subclass(Logged)
for _ in range(3):
    made = weight.exp()
    made.register_hook(lambda gradient: gradient * 2)
    with Names():
        (made * 2).sum().backward()
    (weight * logged).sum().backward()
    print(names)
    names.clear()
