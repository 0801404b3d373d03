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


@pytest.mark.parametrize("fixed_of_length", [0, 600], ids=["samples", "a table of positions"])
def test_rows_after_the_first_take_few_runs(fixed_of_length: int) -> None:
    """Where attention's square is, and a limit that thousands of bytes are away from a guess of half the size."""

    def measured(batch: int, length: int) -> SizeRow:
        each = 3700 * length + 16 * length * length
        return SizeRow(size=length, peak_bytes=1_000_000 + fixed_of_length * length + batch * each)

    rows = PairSearch(("batch", "seq"), 100_000_000, measured).run()

    assert len(rows) == MAX_ROWS
    assert max(len(row.rows) for row in rows[1:]) <= (5 if fixed_of_length else 2)


def test_a_row_is_exact_where_no_guess_is_right() -> None:
    """Peaks stay the same up to some size, and grow in steps from there on."""

    def measured(batch: int, length: int) -> SizeRow:
        return SizeRow(size=length, peak_bytes=max(30_000, batch * (length // 64 * 64) * 50))

    rows = PairSearch(("batch", "seq"), 100_000, measured).run()

    assert [row.largest for row in rows[:5]] == [2047, 1023, 511, 255, 127]


def test_the_first_row_may_have_one_pair_that_runs() -> None:
    """Then it says nothing of how the next one grows."""

    def measured(batch: int, length: int) -> SizeRow:
        return SizeRow(size=length, failure="" if length == 1 else "too long", peak_bytes=100 * batch)

    rows = PairSearch(("batch", "seq"), 350, measured).run()

    assert [row.largest for row in rows] == [1, 1, None]
