"""Which tables of positions are added along the batch."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.facts.axes import BatchPositions

TABLE, X = torch.randn(50, 1, 8), torch.randn(4, 6, 8)
FIRST = nn.MultiheadAttention(8, 2, batch_first=True)
LAST = nn.MultiheadAttention(8, 2)


def heads(x: Tensor) -> Tensor:
    """Attend with two heads."""
    q = x.view(4, 6, 2, 4).transpose(1, 2)
    return functional.scaled_dot_product_attention(q, q, q)


@pytest.mark.parametrize(
    ("step", "count"),
    [
        (lambda: (y := X + TABLE[: X.size(0)], FIRST(y, y, y)), 1),
        (lambda: heads(X + TABLE[: X.size(0)]), 1),
        (lambda: (y := X + TABLE[: X.size(0)], LAST(y, y, y)), 0),  # time is first
        (lambda: (y := X + TABLE[: X.size(1)].transpose(0, 1), FIRST(y, y, y)), 0),
        (lambda: (y := X + (X.sum(1) * 2)[:, None], FIRST(y, y, y)), 0),  # a condition of each example
        (lambda: (y := X + X[:, :1], FIRST(y, y, y)), 0),  # the first place of each
        (lambda: X + TABLE[: X.size(0)], 0),  # no attention
    ],
)
def test_entries_of_each_example(step: Callable[[], object], count: int) -> None:
    """Where an attention takes that axis for the batch."""
    found = facts_of(BatchPositions, step)

    assert [(one.shape, one.table) for one in found] == [((4, 6, 8), (4, 1, 8))] * count
