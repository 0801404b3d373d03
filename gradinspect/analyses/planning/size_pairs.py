"""Search for two sizes at once: for each of the one, the largest of the other that fits. Every pair is measured.

What is a number of ranks is always the first one, which is doubled from row to row. Where the other one begins
to fit no more is looked for near the last row's for twice the ranks; for twice the batch, where the peaks of all rows
before lead to expect it.
"""

from collections.abc import Callable
from typing import Final

from gradinspect.analyses.planning.boundary import SizeRow
from gradinspect.analyses.planning.rank_numbers import WORLD_SIZE
from gradinspect.analyses.planning.size_growth import SizeGrowth
from gradinspect.analyses.planning.sizes import MAX_FAILURES, SizeSearch
from gradinspect.graph import Record

MAX_ROWS: Final = 10
PAIRS_WITHOUT_LIMIT: Final = (1, 4, 16, 64)  # of each


class PairRow(Record, frozen=True):
    """What was measured with one number of the first."""

    number: int
    rows: tuple[SizeRow, ...]  # of the second, the smallest first
    largest: int | None = None  # that fits

    @property
    def best(self) -> SizeRow | None:
        """The row of the largest that fits."""
        return next((row for row in self.rows if row.size == self.largest), None)

    @property
    def beyond(self) -> SizeRow | None:
        """The next larger one, which does not fit."""
        return next((row for row in self.rows if row.size > (self.largest or 0)), None)


class PairTable(Record, frozen=True):
    """The pairs that were tried."""

    source: str
    names: tuple[str, str]
    limit: int | None
    rows: tuple[PairRow, ...]  # by the first, doubled from row to row
    not_counted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def has_fitting(self) -> bool:
        """Whether any pair fits."""
        return any(row.largest is not None for row in self.rows)


class PairSearch:
    """Measures pairs."""

    def __init__(self, names: tuple[str, str], limit: int | None, measure: Callable[[int, int], SizeRow]) -> None:
        """Set up.

        Args:
            names: Of both; a number of ranks is the first.
            limit: The most bytes that the peak may take; None: only measure some.
            measure: Runs one pair.
        """
        self._is_by_ranks = names[0] == WORLD_SIZE
        self._limit = limit
        self._measure = measure
        self._step = 1
        self._growth: SizeGrowth | None = None

    def run(self) -> tuple[PairRow, ...]:
        """Return a row for each number of the first, as long as anything fits."""
        if self._limit is None:
            return tuple(map(self._without_limit, PAIRS_WITHOUT_LIMIT))
        found: list[PairRow] = []
        while not self._is_over(found):
            found.append(self._row(2 ** len(found), found[-1].largest if found else None, self._limit))
        return tuple(found)

    def _is_over(self, found: list[PairRow]) -> bool:
        """Return whether more rows would say nothing new."""
        largest = [row.largest for row in found]
        if self._is_by_ranks:
            return len(found) >= MAX_ROWS or (len(found) > 2 and largest[-3] == largest[-1] is not None)
        ceased = any(largest) and largest[-1] is None
        return len(found) >= (MAX_ROWS if any(largest) else MAX_FAILURES) or ceased

    def _without_limit(self, number: int) -> PairRow:
        return PairRow(number=number, rows=tuple(self._measure(number, second) for second in PAIRS_WITHOUT_LIMIT))

    def _row(self, number: int, before: int | None, limit: int) -> PairRow:
        search = SizeSearch(limit, lambda second: self._measure(number, second))
        if before is None:
            largest = search.run()[1]
        elif self._growth is None:
            largest = search.near(before, self._step)
        else:
            guess, slope = self._growth.guess(number, limit, before)
            largest = search.near(guess, self._step, slope)
        self._step = search.tried.step
        row = PairRow(number=number, rows=search.tried.rows, largest=largest)
        if row.best is not None:
            self._learn(row, row.best)
        return row

    def _learn(self, row: PairRow, end: SizeRow) -> None:
        """Take what was measured, to guess where the next row ends; of ranks it is not known how they share."""
        if self._growth is not None:
            self._growth.note(row.number, end)
        elif not self._is_by_ranks:
            self._growth = SizeGrowth(row.number, row.rows, end)
