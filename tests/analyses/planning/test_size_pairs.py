"""The search for two sizes at once."""

import pytest

from gradinspect.analyses.planning.boundary import SizeRow
from gradinspect.analyses.planning.rank_numbers import WORLD_SIZE
from gradinspect.analyses.planning.size_pairs import MAX_ROWS, PairSearch


@pytest.mark.parametrize("limit", [100, 5000, 44_444])
def test_each_row_has_the_largest_that_fits(limit: int) -> None:
    """Until nothing fits, in few runs."""
    runs: list[tuple[int, int]] = []

    def measured(batch: int, length: int) -> SizeRow:
        runs.append((batch, length))
        return SizeRow(size=length, peak_bytes=1000 + batch * (37 * length + length * length // 50))

    rows = PairSearch(("batch", "seq"), limit, measured).run()

    for row in rows:
        fitting = [n for n in range(1, 2000) if 1000 + row.number * (37 * n + n * n // 50) <= limit]
        assert row.largest == max(fitting, default=None)
        assert row.best is None or row.best.size == row.largest
        assert row.beyond is None or row.beyond.peak_bytes > limit
    assert len(runs) == len(set(runs)) <= 20 * len(rows)
    assert limit == 100 or rows[-1].largest is None or len(rows) == MAX_ROWS


def test_more_ranks_let_a_larger_batch_fit() -> None:
    """Until they change nothing."""

    def measured(ranks: int, batch: int) -> SizeRow:
        return SizeRow(size=batch, peak_bytes=10_000 // ranks + 100 * batch)

    rows = PairSearch((WORLD_SIZE, "batch"), 6000, measured).run()

    assert [(row.number, row.largest) for row in rows] == [
        (1, None), (2, 10), (4, 35), (8, 47), (16, 53), (32, 56), (64, 58), (128, 59), (256, 59), (512, 59)
    ]  # fmt: skip


def test_without_a_limit_some_are_measured() -> None:
    """The same sizes in each row."""
    rows = PairSearch(("a", "b"), None, lambda a, b: SizeRow(size=b, peak_bytes=a * b)).run()

    assert [[row.peak_bytes for row in one.rows] for one in rows] == [
        [1, 4, 16, 64], [4, 16, 64, 256], [16, 64, 256, 1024], [64, 256, 1024, 4096]
    ]  # fmt: skip
