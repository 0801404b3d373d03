"""Guess where a pair of sizes ceases to fit, from the peaks of other pairs. What is guessed is measured afterwards.

NOTE [Where a row ends]
Most of what a step needs beyond parameters and the optimizer's state is there once for each sample, and grows with the
length of a sequence, and with its square. So a curve through three sizes of the first row says what is there without
any sample. Of each row's end, the bytes for each unit of both sizes are taken, which are on a line where peaks are
`a * seq + b * seq * seq`: the line through the two nearest ends leads to the next one. What small sizes need is left
out: the optimizer's step may need more than they do.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from gradinspect.analyses.planning.boundary import SizeRow


class Guess(NamedTuple):
    """The second size that probably just fits, and by how many bytes the peak grows there with each more."""

    size: int
    slope: float


class SizeGrowth:
    """Guesses where the next row ends. NOTE [Where a row ends]."""

    def __init__(self, number: int, rows: Sequence[SizeRow], end: SizeRow) -> None:
        """Start with what was measured with one number, and the largest that fits."""
        ran = [row for row in rows if not row.failure and row.size <= end.size]
        sizes = {min(ran, key=lambda row: abs(row.size * parts - end.size)).size for parts in (1, 2, 4)}
        points = [row for row in ran if row.size in sizes]
        self._fixed = min(max(_without_any(points), 0.0), *(float(row.peak_bytes) for row in points))
        self._shares: dict[int, float] = {}  # by the second size: bytes for each unit of both
        for row in points[-2:]:
            self.note(number, row)

    def note(self, number: int, end: SizeRow) -> None:
        """Take the largest that fits with one number."""
        self._shares[end.size] = (end.peak_bytes - self._fixed) / (number * end.size)

    def guess(self, number: int, limit: int, most: int) -> Guess:
        """Guess the largest second size with which a number fits, from 1 to `most`."""
        size = bisect_left(range(1, most + 1), True, key=lambda size: self._peak(number, size) > limit) or 1
        return Guess(size, self._peak(number, size + 1) - self._peak(number, size))

    def _peak(self, number: int, size: int) -> float:
        low, high, *_ = (*sorted(self._shares, key=lambda known: abs(known - size))[:2], size)
        share = self._shares[low]
        if len(self._shares) > 1:
            share += (self._shares[high] - share) * (size - low) / (high - low)
        return self._fixed + share * number * size


def _without_any(points: Sequence[SizeRow]) -> float:
    """Return the bytes of size 0, on the curve through all."""
    total = 0.0
    for point in points:
        share = 1.0
        for other in points:
            if other is not point:
                share *= other.size / (other.size - point.size)
        total += share * point.peak_bytes
    return total
