"""Matrices whose rows are all equal."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from gradinspect.checks.evidence.in_place.equal_rows import LEAST_STEPS, EqualRowsLog
from gradinspect.recording.values.magnitudes import fetched


def found(weight: torch.Tensor, change: Callable[[torch.Tensor], object], times: int = LEAST_STEPS + 1) -> list[str]:
    """Change a parameter several times, and return the names of what is found."""
    log, parameter = EqualRowsLog(), nn.Parameter(weight)
    for _ in range(times):
        log.begin([(parameter, "w")], 2)
        log.settle(fetched(log.pending))
        with torch.no_grad():
            change(parameter)
    return [one.name for one in log.found()]


def shrink(weight: torch.Tensor) -> None:
    """Change each row alike."""
    weight.mul_(0.5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 2, 2)])
def test_rows_that_stay_equal(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """After enough steps, and not before."""
    assert found(torch.full(shape, 0.1, dtype=dtype), shrink) == ["w"]
    assert found(torch.full(shape, 0.1, dtype=dtype), shrink, LEAST_STEPS) == []


@pytest.mark.parametrize(
    "weight",
    [torch.randn(4, 3), torch.full((1, 3), 0.1), torch.full((4,), 0.1), torch.full((4, 1), 0.1), torch.zeros(4, 3),
     torch.ones(4, 3, dtype=torch.complex64), torch.full((4, 3), float("nan")), torch.zeros(4, 0)],
)  # fmt: skip
def test_what_has_no_equal_rows(weight: torch.Tensor) -> None:
    """Random ones, one row, scales, what stays zero, and what cannot be compared."""
    assert found(weight, shrink) == []


def test_rows_that_differ_later_or_never_change() -> None:
    """The first is how a layer of one constant learns, the second is another mistake."""
    assert found(torch.full((4, 3), 0.1), lambda weight: weight[0].add_(1)) == []
    assert found(torch.full((4, 3), 0.1), lambda _: None) == []


def test_one_that_has_differed_once_is_not_looked_at_again() -> None:
    """So that it costs nothing."""
    log, parameter = EqualRowsLog(), nn.Parameter(torch.randn(4, 3))
    log.begin([(parameter, "w")], 2)
    log.settle(fetched(log.pending))
    log.begin([(parameter, "w")], 2)

    assert log.pending == []
