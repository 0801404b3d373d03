"""The search for the largest size that fits."""

from collections.abc import Callable

import pytest

from gradinspect.analyses.planning.sizes import MAX_SIZE, SizeRow, SizeSearch

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
