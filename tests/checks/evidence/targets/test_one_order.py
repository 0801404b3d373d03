"""Which inputs were reordered without their targets."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.facts.targets import OneOrder

LAYER, NORM, MEAN = nn.Linear(4, 2), nn.BatchNorm1d(4), torch.zeros(4)
X, Y, SIZES = torch.randn(20, 4), torch.arange(20) % 2, torch.arange(20) % 7


def loss(x: Tensor, y: Tensor) -> Tensor:
    """Compare scores of x with y."""
    return functional.cross_entropy(LAYER(x), y)


def part(y: Tensor, *, is_shared: bool = False) -> Tensor:
    """Compare a part of a permutation with a part of the targets."""
    order = torch.randperm(20)[:10]
    return loss(X[order], y[order] if is_shared else y[:10])


def put_back() -> Tensor:
    """Sort by sizes, and put the scores back."""
    order = SIZES.argsort()
    return functional.cross_entropy(LAYER(X[order])[order.argsort()], Y)


def written_back() -> Tensor:
    """Sort by sizes, and write the scores to their places."""
    order = SIZES.sort()[1]
    scores = LAYER(X[order])
    return functional.cross_entropy(torch.zeros(20, 2).index_copy(0, order, scores), Y)


def both(order: Tensor) -> Tensor:
    """Put both into one order."""
    return loss(X[order], Y[order])


def drawn_later() -> Tensor:
    """Make the targets after the order."""
    order = torch.randperm(20)
    return loss(X[order], torch.tensor([int(Y[place]) for place in order.tolist()]))


@pytest.mark.parametrize(
    ("step", "found"),
    [
        (lambda: loss(X[torch.randperm(20)], Y), [(20, False)]),
        (lambda: loss(X.index_select(0, torch.randperm(20)), Y), [(20, False)]),
        (lambda: loss(NORM(X[torch.randperm(20)]), Y), [(20, False)]),
        (lambda: part(Y), [(20, False)]),
        (lambda: loss(X[SIZES.argsort()], Y), [(20, True)]),
        (lambda: loss(X[SIZES.sort(descending=True)[1]], Y), [(20, True)]),
        (lambda: part(Y, is_shared=True), []),
        (lambda: both(torch.randperm(20)), []),
        (lambda: both(SIZES.argsort()), []),
        (put_back, []),
        (written_back, []),
        (drawn_later, []),
        (lambda: loss(X, Y[torch.randperm(20)]), []),  # labels that are mixed
        (lambda: loss(X + X[torch.randperm(20)], Y), []),
        (lambda: loss(X[torch.randperm(20)] - MEAN, Y), []),  # it may be anything
        (lambda: loss(X[torch.randperm(20)], torch.arange(20) * 0), []),
        (lambda: loss(X[torch.randperm(20)], torch.zeros(20, dtype=torch.long)), []),
        (lambda: loss(X.T[:, torch.randperm(20)].T, Y), []),  # not by rows, as it seems
        (lambda: loss(X[torch.randperm(20)[:10]], Y[:10].clone()), []),  # a part of what
        (lambda: functional.cross_entropy(X[torch.randperm(20)], Y), []),  # nothing learns
        (lambda: loss(X[torch.randperm(10)], Y[:10]), [(10, False)]),
    ],
)
def test_inputs_that_were_reordered_alone(step: Callable[[], object], found: list[tuple[int, bool]]) -> None:
    """By rows, with all that comes to the scores, and not put back."""
    assert [(one.length, one.is_sorted) for one in facts_of(OneOrder, step)] == found


def test_two_calls_are_not_enough() -> None:
    """They may be the only ones."""
    assert not facts_of(OneOrder, lambda: loss(X[torch.randperm(20)], Y), calls=2)
