"""Which masks hide nothing from a softmax."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn

from gradinspect.checks.facts.axes import AddedMask

SCORES = nn.Parameter(torch.randn(4, 6, 6))
LENGTHS = torch.tensor([[6], [4], [3], [5]])


@pytest.mark.parametrize(
    ("hide", "filled"),
    [
        (lambda counts: SCORES + counts.float()[:, None], [None]),
        (lambda counts: SCORES - (1 - counts[:, None].float() * 1), []),  # a product may be anything
        (lambda counts: SCORES - (1 - counts[:, None].float()), [None]),
        (lambda counts: SCORES.masked_fill(~counts[:, None], 1e-9), [1e-9]),
        (lambda counts: torch.where(counts[:, None], SCORES, 0.0), [0.0]),
        (lambda counts: SCORES.masked_fill(~counts[:, None], -1e9), []),
        (lambda counts: SCORES + torch.zeros(4, 6, 6).masked_fill(~counts[:, None], float("-inf")), []),
        (lambda _counts: SCORES + torch.rand(4, 6, 6), []),
    ],
)
def test_what_a_softmax_gets(hide: Callable[[Tensor], Tensor], filled: list[float | None]) -> None:
    """A mask out of a comparison that is added or subtracted, or a fill near 0."""
    found = facts_of(AddedMask, lambda: hide(torch.arange(6) < LENGTHS).softmax(-1))

    assert [one.filled for one in found] == filled


def test_what_no_softmax_gets_is_no_mask() -> None:
    """Such as an indicator among features."""
    assert not facts_of(AddedMask, lambda: SCORES + (torch.rand(4, 6, 6) > 0.5).float())
    assert not facts_of(AddedMask, lambda: SCORES.masked_fill(torch.rand(4, 6, 6) > 0.5, 0.0).sum())
