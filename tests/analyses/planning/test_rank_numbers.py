"""The search for the smallest number of ranks."""

import pytest

from gradinspect.analyses.planning.boundary import SizeRow
from gradinspect.analyses.planning.rank_numbers import RankSearch


def sharded(number: int, step: int = 1) -> SizeRow:
    """Measure a rank that has its part of 10,000 bytes, and 100 of its own."""
    return SizeRow(size=number, peak_bytes=100 + -(-10_000 // number), failure="no" if number % step else "")


@pytest.mark.parametrize("limit", [150, 333, 1100, 5099, 20_000])
def test_the_smallest_number_is_exact(limit: int) -> None:
    """One rank fewer does not fit; and few are run."""
    rows, smallest = RankSearch(limit, sharded).run()

    assert smallest == min(number for number in range(1, 1000) if sharded(number).peak_bytes <= limit)
    assert len(rows) <= 16


def test_whole_hosts_are_found() -> None:
    """A mesh of hosts with eight ranks each can be made for multiples of eight only."""
    rows, smallest = RankSearch(350, lambda number: sharded(number, 8)).run()

    assert smallest == 40
    assert {row.size for row in rows if not row.failure} >= {32, 40}


def test_more_ranks_do_not_help_where_nothing_is_shared() -> None:
    """Three doublings show it."""
    rows, smallest = RankSearch(350, lambda number: SizeRow(size=number, peak_bytes=1000)).run()

    assert (smallest, rows[-1].size) == (None, 8)
