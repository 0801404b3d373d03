"""Which factors of LambdaLR are learning rates."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from torch import nn
from torch.optim import SGD
from torch.optim.lr_scheduler import ExponentialLR, LambdaLR

from gradinspect.checks.evidence.rates.factors import RateFactors


def factors(rate: float, function: Callable[[int], float], steps: int = 4, kind: Any = LambdaLR) -> bool:
    """Step a scheduler some times, and return whether its factors are rates."""
    optimizer = SGD(nn.Linear(2, 1).parameters(), lr=rate)
    scheduler: Any = kind(optimizer, function)
    log, used = RateFactors(), [group["lr"] for group in optimizer.param_groups]
    for _ in range(steps):
        optimizer.step()
        scheduler.step()
        log.note(scheduler, used, None)
    return log.are_rates


@pytest.mark.parametrize(
    ("rate", "function"),
    [
        (0.01, lambda epoch: 0.01 * 0.9**epoch),
        (0.1, lambda epoch: 0.1 if epoch < 30 else 0.01),
        (0.001, lambda epoch: min(0.001, 0.001 * (epoch + 1) / 3)),
    ],
    ids=["a decay", "a constant", "a warm-up"],
)
def test_the_largest_is_the_learning_rate(rate: float, function: Callable[[int], float]) -> None:
    """A function that returns rates."""
    assert factors(rate, function)


@pytest.mark.parametrize(
    ("rate", "function", "steps"),
    [
        (0.1, lambda epoch: 0.9**epoch, 4),
        (0.1, lambda epoch: min(1.0, 0.1 * (epoch + 1)), 4),
        (0.1, lambda epoch: 0.1 if epoch < 30 else 1.0, 4),
        (0.1, lambda epoch: (epoch + 1) / 50, 4),
        (0.1, lambda epoch: 0.1 - epoch / 100, 1),
        (1.0, lambda epoch: 1.0, 4),
        (0.0, lambda epoch: 0.0, 4),
        (0.1, partial(pow, 0.1), 4),
    ],
    ids=["a decay", "a warm-up", "in two parts", "that grows so far", "one step", "of 1", "of 0", "no function"],
)
def test_other_factors_are_not(rate: float, function: Callable[[int], float], steps: int) -> None:
    """Also where one happens to be as large."""
    assert not factors(rate, function, steps)


def test_other_schedulers_have_no_function() -> None:
    """Nothing is known of their factors."""
    assert not factors(0.1, 0.1, kind=ExponentialLR)  # type: ignore[arg-type]
