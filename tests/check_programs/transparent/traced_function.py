"""torch.jit.trace runs the function again and compares."""

import warnings

import torch

weight = torch.nn.Parameter(torch.ones(3))
weight.sum().backward()


def scaled(values):
    """Do a few things in place, too."""
    return (values * 2).add_(1).relu()


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    traced = torch.jit.trace(scaled, torch.randn(3))
    traced_twice = torch.jit.trace(torch.nn.Linear(3, 2), torch.randn(1, 3))
print(sorted({one.category.__name__ for one in caught}))
print([node.kind() for node in traced.graph.nodes()])
print([node.kind() for node in traced_twice.graph.nodes()])
traced(weight).sum().backward()
print(weight.grad)
