"""Which targets the last function of a model cannot return."""

from collections.abc import Callable

import pytest
import torch
from argument_facts import facts_of
from torch import Tensor, nn
from torch.nn import functional

from gradinspect.checks.evidence.targets import ranges
from gradinspect.checks.facts.targets import OutOfReach

LAYER = nn.Linear(4, 1)
X = torch.linspace(-3, 3, 20)[:, None]


@pytest.mark.parametrize(
    ("last", "target", "op"),
    [
        (torch.relu, X, "relu"),
        (torch.sigmoid, X, "sigmoid"),
        (lambda x: torch.tanh(x).squeeze(1), X[:, 0], "tanh"),
        (functional.softplus, X, "softplus"),
        (torch.relu, X.abs(), None),
        (torch.sigmoid, X.sigmoid(), None),
        (torch.sigmoid, X.sigmoid() + 0.03, None),  # noise
        (lambda x: 3 * torch.tanh(x), X, None),
        (lambda x: x, X, None),
    ],
)
def test_targets_outside_of_a_range(last: Callable[[Tensor], Tensor], target: Tensor, op: str | None) -> None:
    """Many of them, and clearly so, in each call."""
    found = facts_of(OutOfReach, lambda: functional.mse_loss(last(LAYER(torch.randn(20, 4))), target))

    assert [one.op for one in found] == ([] if op is None else [op])
    assert all(one.share >= 0.3 for one in found)


def test_one_call_within_the_range_shows_that_it_can_be_reached() -> None:
    """It is data that vary."""
    targets = iter([X, X, X.abs(), X])

    assert not facts_of(OutOfReach, lambda: functional.l1_loss(LAYER(torch.randn(20, 4)).relu(), next(targets)), 4)


def test_large_targets_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not read."""
    monkeypatch.setattr(ranges, "MOST_ELEMENTS", 5)

    assert not facts_of(OutOfReach, lambda: functional.mse_loss(LAYER(torch.randn(20, 4)).relu(), X), notes=1)
