"""Which losses diverge."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradinspect.checks.evidence.divergence import LossGrowth, RisingLoss
from gradinspect.graph import Frame

LINE, OTHER = (
    Frame(file="train.py", line=9, code="loss.backward()"),
    Frame(file="train.py", line=20, code="b.backward()"),
)
INF, NAN = float("inf"), float("nan")


def call(*values: float, kind: str = "backward") -> Any:  # as an engine's call
    """Make a call of the engine for a loss."""
    return SimpleNamespace(kind=kind, outputs=[torch.tensor(value, requires_grad=True) for value in values])


def last(*values: float) -> RisingLoss | None:
    """Return what is said of the last of some losses on a line."""
    growth = LossGrowth()
    return [growth.note(call(value), LINE) for value in values][-1]


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ((7.0, 70.0, 3e5, 2e9), RisingLoss(7.0, 2e9, 4)),
        ((7.0, 70.0, 3e5), None),  # it may come back
        ((7.0, 3e9, INF), RisingLoss(7.0, 3e9, 2)),
        ((7.0, 3e9, NAN), RisingLoss(7.0, 3e9, 2)),
        ((7.0, INF), None),  # something else made it so
        ((7.0, 5.0, 60.0, 3e5, 2e9), RisingLoss(5.0, 2e9, 4)),
        ((7.0, 1e-9, 1e-7, 1e-5, 1e-2), None),  # from almost nothing
        ((7.0, 70.0, 60.0, 3e5, 2e9), None),
        ((-7.0, 70.0, 3e5, 2e9), None),
        ((7.0, 8.0, 9.0, 10.0, 11.0), None),
    ],
)
def test_a_loss_that_grows_in_each_call_diverges(losses: tuple[float, ...], expected: RisingLoss | None) -> None:
    """A million times, and to a million times the first of all."""
    found = last(*losses)

    assert (found is None) == (expected is None)
    assert found is None or found == pytest.approx(expected, rel=1e-6)  # of float32


def test_lines_are_apart() -> None:
    """A critic's loss is not compared with the generator's."""
    growth = LossGrowth()
    found = [
        growth.note(call(value), line) for value, line in zip((1.0, 1e4, 1e9, 1e12), (LINE, OTHER) * 2, strict=True)
    ]

    assert found == [None] * 4


def test_what_is_no_loss_is_not_read() -> None:
    """Several outputs, and those of `autograd.grad`."""
    growth = LossGrowth()

    assert [growth.note(call(10.0**n, kind="grad"), LINE) for n in range(0, 40, 8)] == [None] * 5
    assert [growth.note(call(10.0**n, 1.0), LINE) for n in range(0, 40, 8)] == [None] * 5
