"""The search for the largest size that fits."""

from collections.abc import Callable

import pytest

from gradinspect.analyses.planning.boundary import SizeRow
from gradinspect.analyses.planning.sizes import MAX_SIZE, SizeSearch

SHAPES: dict[str, Callable[[int], int]] = {
    "a line": lambda size: 1000 + 37 * size,
    "a square": lambda size: 1000 + size * size,
    "flat, then steep": lambda size: max(5000, 300 * size),
    "steps": lambda size: 1000 + 512 * (size // 7),
}


@pytest.mark.parametrize("limit", [999, 5000, 77_777, 10**6])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_largest_size_is_exact(shape: Callable[[int], int], limit: int) -> None:
    """The next size does not fit; and few sizes are run."""
    rows, largest = SizeSearch(limit, lambda size: SizeRow(size=size, peak_bytes=shape(size))).run()

    fitting = [size for size in range(1, 40_000) if shape(size) <= limit]
    assert largest == max(fitting, default=None)
    assert len(rows) <= 40
    assert [row.size for row in rows] == sorted(row.size for row in rows)


def test_sizes_that_are_too_small_are_passed_over() -> None:
    """A batch norm fails on a single sample."""

    def measured(size: int) -> SizeRow:
        return SizeRow(size=size, failure="too few" if size == 1 else "", peak_bytes=10 * size)

    assert SizeSearch(95, measured).run()[1] == 9


def test_what_cannot_be_run_does_not_fit() -> None:
    """Whatever the reason: a position embedding is only so long."""

    def measured(size: int) -> SizeRow:
        return SizeRow(size=size, failure="too long" if size > 24 else "", peak_bytes=10 * size)

    assert SizeSearch(10**9, measured).run()[1] == 24


def test_a_program_that_does_not_grow_ends_the_search() -> None:
    """At a largest size."""
    assert SizeSearch(100, lambda size: SizeRow(size=size, peak_bytes=10)).run()[1] == MAX_SIZE


@pytest.mark.parametrize("guess", [1, 40, 500, 30_000])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_near_a_guess_the_largest_size_is_as_exact(shape: Callable[[int], int], guess: int) -> None:
    """From below and from above, and in few runs where the guess is right."""
    limit = 77_777
    search = SizeSearch(limit, lambda size: SizeRow(size=size, peak_bytes=shape(size)))
    fitting = max(size for size in range(1, 40_000) if shape(size) <= limit)

    assert search.near(guess) == fitting
    again = SizeSearch(limit, lambda size: SizeRow(size=size, peak_bytes=shape(size)))
    assert again.near(fitting) == fitting
    assert len(again.tried.rows) == 2


def test_no_size_fits_near_a_guess() -> None:
    """Nor has it to, from row to row of a table."""
    assert SizeSearch(10, lambda size: SizeRow(size=size, peak_bytes=100 * size)).near(5) is None


def test_sixteen_pixels_are_too_few_for_a_deep_convolution() -> None:
    """And only multiples of 32 can be run."""

    def measured(size: int) -> SizeRow:
        return SizeRow(size=size, failure="too few" if size % 32 else "", peak_bytes=10 * size)

    search = SizeSearch(5000, measured)
    assert search.run()[1] == 480
    assert search.tried.step == 32
    assert SizeSearch(5000, measured).near(70, step=32) == 480
