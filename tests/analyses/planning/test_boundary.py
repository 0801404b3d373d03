"""The boundary between numbers that fit and numbers that do not."""

from collections.abc import Callable

import pytest

from gradinspect.analyses.planning.boundary import Boundary, SizeRow


def boundary(peak: Callable[[int], int], limit: int, runs: Callable[[int], bool] = lambda _: True) -> Boundary:
    """Measure by a formula; some numbers cannot be run."""

    def measured(number: int) -> SizeRow:
        return SizeRow(size=number, peak_bytes=peak(number), failure="" if runs(number) else "no")

    return Boundary(limit, measured)


@pytest.mark.parametrize("step", [1, 2, 8, 64])
def test_numbers_that_cannot_be_run_are_no_limit(step: int) -> None:
    """The last multiple that fits is found, whatever fails in between."""
    tried = boundary(lambda number: number, 700, lambda number: number % step == 0)

    assert tried.fits(512)
    assert not tried.fits(1024)
    assert tried.narrowed(512, 1024) == 700 // step * step
    assert tried.step == step


def test_what_fails_for_all_larger_ones_does_not_fit() -> None:
    """As a sequence that is too long."""
    tried = boundary(lambda number: number, 10**6, lambda number: number <= 77)

    assert tried.fits(64)
    assert not tried.fits(128)
    assert tried.narrowed(64, 128) == 77
    assert tried.step == 1


def test_it_is_narrowed_from_above_as_well() -> None:
    """Where larger numbers need less."""
    tried = boundary(lambda number: 10_000 // number, 333)

    assert tried.fits(64)
    assert not tried.fits(16)
    assert tried.narrowed(64, 16) == 30
    assert [row.size for row in tried.rows] == sorted(row.size for row in tried.rows)
