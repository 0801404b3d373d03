"""Attributes of torch's classes are replaced by properties that count who reads them: none of our reads is seen."""

import collections
import os
from pathlib import Path
from types import GetSetDescriptorType

import torch
from torch import nn

counts = collections.Counter()


def count(holder, name, get, put):
    """Put a property in the place of an attribute."""

    def counting_get(self):
        counts[f"{holder.__name__}.{name}"] += 1
        return get(self)

    def counting_put(self, value):
        counts[f"{holder.__name__}.{name} ="] += 1
        put(self, value)

    setattr(holder, name, property(counting_get, counting_put))


def count_in_instances(holder, name):
    """Replace an attribute that each object has in its own dict."""
    count(holder, name, lambda self: vars(self)[name], lambda self, value: vars(self).update({name: value}))


for name, value in vars(torch._C.TensorBase).items():
    if isinstance(value, GetSetDescriptorType) and not name.startswith("_python"):
        count(torch.Tensor, name, value.__get__, value.__set__)
count_in_instances(nn.Module, "training")
count_in_instances(torch.optim.Optimizer, "param_groups")
count_in_instances(torch.optim.Optimizer, "state")


class Members(dict):
    """A module's members, which count who asks for them."""

    def items(self):
        counts["items"] += 1
        return super().items()

    def __getitem__(self, name):
        counts["members[]"] += 1
        return super().__getitem__(name)

    def __iter__(self):
        counts["iter(members)"] += 1
        return super().__iter__()


class Parameter(nn.Parameter):
    """A class of parameters with properties of its own."""


for name in ("grad", "requires_grad", "shape", "grad_fn"):
    value = vars(torch._C.TensorBase)[name]
    count(Parameter, name, value.__get__, value.__set__)

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
model[0].weight = Parameter(model[0].weight.detach())
model._modules = Members(model._modules)
model[1]._buffers = Members(model[1]._buffers)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(3):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(torch.randn(5, 4)), torch.randint(0, 3, (5,)))
    loss.backward()
    optimizer.step()
    print(tuple(loss.shape), loss.requires_grad, loss.grad_fn is not None)
report = "".join(f"{name} {number}\n" for name, number in sorted(counts.items()))
print(report, end="")
if "COUNTS_FILE" in os.environ:  # a verb may print in between
    Path(os.environ["COUNTS_FILE"]).write_text(report)
