"""Learning rates that a scheduler leaves, told to `RateFalls` one by one."""

import pytest

from gradinspect.checks.evidence.training.optimizers import RateFalls


@pytest.mark.parametrize(
    ("rates", "count"),
    [
        ([0.1, 0.01, 0.001], 2),
        ([0.1, 0.09, 0.081], 0),  # a factor near 1
        ([0.1, 0.01, 0.0], 0),  # a schedule that ends
        ([0.1, 0.01, 0.0001], 1),  # another factor
        ([0.1, None, 0.001], 0),
    ],
)
def test_falls_by_one_factor_are_counted(rates: list[float | None], count: int) -> None:
    """With one step of the optimizer before each."""
    falls = RateFalls(rate=rates[0])
    for steps, rate in enumerate(rates[1:], 1):
        falls.note(rate, steps, None)

    assert falls.count == count


def test_a_schedule_by_epochs_may_fall() -> None:
    """Several steps of the optimizer lie between."""
    falls = RateFalls(rate=0.1)
    for steps, rate in ((4, 0.01), (8, 0.001)):
        falls.note(rate, steps, None)

    assert falls.count == 0
