"""Search for the smallest number of ranks with which a rank fits. Every number is measured.

Numbers are doubled until one fits; then the boundary between the last two is narrowed down. Where two doublings in a
row have not lowered the peak, as without anything that is shared among ranks, more ranks will not either.
"""

from collections.abc import Callable
from typing import Final

from gradinspect.analyses.planning.boundary import Boundary, SizeRow

WORLD_SIZE: Final = "world-size"  # to search for, in the place of a name
MAX_RANKS = 2**16
RANKS_WITHOUT_LIMIT = (1, 2, 4, 8, 16, 32, 64)


class RankSearch:
    """Looks for the smallest number of ranks."""

    def __init__(self, limit: int, measure: Callable[[int], SizeRow]) -> None:
        """Set up.

        Args:
            limit: The most bytes that the peak of a rank may take.
            measure: Runs one rank of a number of them.
        """
        self.tried = Boundary(limit, measure, line=lambda number: 1 / number)

    def run(self) -> tuple[tuple[SizeRow, ...], int | None]:
        """Return all that was measured, and the smallest number that fits."""
        too_few: int | None = None
        number = 1
        while number <= MAX_RANKS and not self._helps_no_more():
            if self.tried.fits(number):
                fits = number if too_few is None else self.tried.narrowed(number, too_few)
                return self.tried.rows, fits
            too_few = number
            number *= 2
        return self.tried.rows, None

    def _helps_no_more(self) -> bool:
        peaks = [row.peak_bytes for row in self.tried.rows if not row.failure and row.size > 1]
        return len(peaks) > 2 and peaks[-3] <= min(peaks[-2:])
