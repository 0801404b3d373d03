"""Narrow down where numbers begin, or cease, to fit: sizes of a batch, numbers of ranks. Every number is measured.

NOTE [The next number to try]
Memory grows nearly along a line with a size, and with one over the number of ranks. So the line through the two nearest
numbers says where the limit is crossed, and the number next to it is tried. If the line misleads, the middle is.

NOTE [Numbers that cannot be run]
A program may run with multiples of a number only, as of 8 ranks on a host or of 32 pixels. So a number that fails
between two that run is no limit: from then on multiples of the smallest power of two are tried that it is no multiple
of. Where the larger one of the two fails as well, as a sequence does that is too long, what fails does not fit.
"""

from collections.abc import Callable
from typing import Final

from gradinspect.graph import Record

MAX_RUNS: Final = 60
MIDDLE_EVERY: Final = 4  # runs


class SizeRow(Record, frozen=True):
    """What one number needs."""

    size: int
    peak_bytes: int = 0
    failure: str = ""  # why it cannot be run


class Boundary:
    """Measures numbers, each of them once, and finds the last one that fits."""

    def __init__(
        self, limit: int, measure: Callable[[int], SizeRow], line: Callable[[float], float] = lambda number: number
    ) -> None:
        """Set up.

        Args:
            limit: The most bytes that the peak may take.
            measure: Runs one number.
            line: Of a number, what memory grows with along a line; the number again, of that.
        """
        self._limit = limit
        self._measure = measure
        self._line = line
        self._rows: dict[int, SizeRow] = {}
        self.step = 1  # only multiples of it are tried. NOTE [Numbers that cannot be run]

    @property
    def rows(self) -> tuple[SizeRow, ...]:
        """All that was measured, the smallest number first."""
        return tuple(row for _, row in sorted(self._rows.items()))

    def row(self, number: int) -> SizeRow:
        """Measure one."""
        if number not in self._rows:
            self._rows[number] = self._measure(number)
        return self._rows[number]

    def fits(self, number: int) -> bool:
        """Return whether one fits."""
        row = self.row(number)
        return not row.failure and row.peak_bytes <= self._limit

    def narrowed(self, fits: int, other: int) -> int:
        """Return the number nearest to another one that fits.

        Args:
            fits: A number that does.
            other: One, larger or smaller, that does not.
        """
        runs = len(self._rows) + MAX_RUNS
        while len(self._rows) < runs and (number := self._between(fits, other)) is not None:
            if self.fits(number):
                fits = number
            elif self.row(number).failure and not self.row(other).failure:
                while not number % self.step:
                    self.step *= 2
            else:
                other = number
        return fits

    def _between(self, fits: int, other: int) -> int | None:
        """Choose a number between two; None if there is none. NOTE [The next number to try]."""
        low, high = min(fits, other), max(fits, other)
        first, last = (low // self.step + 1) * self.step, (high - 1) // self.step * self.step
        if first > last:
            return None
        wanted = self._crossing(fits, other)
        if wanted is None or len(self._rows) % MIDDLE_EVERY == 0:
            wanted = (low + high) / 2
        down = int(wanted // self.step) * self.step
        number = down if fits < other or down >= wanted else down + self.step  # what should just fit
        return min(max(number, first), last)

    def _crossing(self, fits: int, other: int) -> float | None:
        """Find where a line through both crosses the limit; None if it does not."""
        inside, outside = self._rows[fits], self._rows[other]
        if outside.failure or outside.peak_bytes <= inside.peak_bytes:
            return None
        share = (self._limit - inside.peak_bytes) / (outside.peak_bytes - inside.peak_bytes)
        start = self._line(fits)
        return self._line(start + share * (self._line(other) - start))
