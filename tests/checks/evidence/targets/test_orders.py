"""Which inputs and targets are shuffled apart."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.facts.targets import TwoOrders

LAYER = nn.Linear(4, 2)
X, Y = torch.randn(20, 4), torch.arange(20) % 2


def loss(x: Tensor, y: Tensor) -> Tensor:
    """Compare scores of x with y."""
    return functional.cross_entropy(LAYER(x), y)


def together() -> Tensor:
    """Put both into one order."""
    order = torch.randperm(20)
    return loss(X[order], Y[order])


def mixed() -> Tensor:
    """Mix examples, each of which is there in its own place as well."""
    order, other = torch.randperm(20), torch.randperm(20)
    return loss(X + X[order] + X[other], Y[other])


@pytest.mark.parametrize(
    ("step", "lengths"),
    [
        (lambda: loss(X[torch.randperm(20)], Y[torch.randperm(20)]), [20]),
        (together, []),
        (mixed, []),
        (lambda: loss(X, Y[torch.randperm(20)]), []),
        (lambda: loss(X[torch.randperm(20)][:, torch.randperm(4)], Y[torch.randperm(20)]), []),
        (lambda: loss(X[:, torch.randperm(4)], Y[torch.randperm(20)]), []),
    ],
)
def test_orders_that_were_drawn_apart(step: Callable[[], object], lengths: list[int]) -> None:
    """One on each side, of one length."""
    assert [one.length for one in facts_of(TwoOrders, step)] == lengths
