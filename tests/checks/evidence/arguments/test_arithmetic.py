"""Which sums and products are handed to the logs that look at them."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import nn

from gradinspect.checks.facts.axes import AddedMask

SCORES = nn.Parameter(torch.randn(4, 6, 6))
LENGTHS = torch.tensor([[6], [4], [3], [5]])


def mask_after(others: int) -> Callable[[], object]:
    """Return a step whose line adds something else some times, and then a mask."""
    added = iter([torch.rand(4, 6, 6)] * others)

    def step() -> object:
        mask = next(added, None)
        return (SCORES + ((torch.arange(6) < LENGTHS).float()[:, None] if mask is None else mask)).softmax(-1)

    return step


@pytest.mark.parametrize(("others", "count"), [(0, 1), (9, 1), (10, 0)])
def test_a_line_that_adds_something_else_is_left(others: int, count: int) -> None:
    """After ten sums that were of no mask: what looks at each operator has to be cheap."""
    assert len(facts_of(AddedMask, mask_after(others), calls=20)) == count
