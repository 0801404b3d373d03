"""Which sums over a batch are added to each of its examples."""

from collections.abc import Callable

import numpy
import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn

from gradinspect.checks.facts.axes import BatchSum

LAYER, X = nn.Linear(3, 3), torch.randn(8, 3)


@pytest.mark.parametrize(
    ("term", "count"),
    [
        (lambda s: s.sum(), 1),
        (lambda s: 0.0 + s.sum() - s.tanh().sum(), 1),
        (lambda s: s.sum(1), 0),
        (lambda s: s.mean(), 0),
        (lambda _s: LAYER.weight.square().sum(), 0),  # a penalty
        (lambda s: s.detach().sum(), 0),
    ],
)
def test_a_sum_of_as_many_rows_as_there_are_examples(term: Callable[[Tensor], Tensor], count: int) -> None:
    """Also where it is a term of what is added."""
    found = facts_of(BatchSum, lambda: X.sum(1) + term(LAYER(X)))

    assert [one.shape for one in found] == [(8, 3)] * count


def test_data_from_numpy_are_added_as_well() -> None:
    """The sum is found by its number among all calls, and the data are a call that was not seen before."""
    found = facts_of(
        BatchSum,
        lambda: (
            torch.from_numpy(numpy.ones(8, "float32")) + LAYER(torch.from_numpy(numpy.ones((8, 3), "float32"))).sum()
        ),
    )

    assert [one.shape for one in found] == [(8, 3)]
