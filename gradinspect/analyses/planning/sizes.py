"""Search for the largest size of a batch, a sequence or an image that fits. Every size is measured.

NOTE [The next size to try]
Memory grows with a size nearly along a line. So sizes are doubled until one does not fit, then the line through the two
nearest sizes says where the limit is crossed, and the size next to it is tried. If the line misleads, the middle is.
"""

from collections.abc import Callable

from gradinspect.graph import Record

MAX_SIZE = 2**20
MAX_RUNS = 60
MIDDLE_EVERY = 4  # runs
MAX_FAILURES = 3  # the smallest sizes: one sample is too few for a batch norm
SIZES_WITHOUT_LIMIT = (1, 2, 4, 8, 16, 32, 64)


class SizeRow(Record, frozen=True):
    """What one size needs."""

    size: int
    peak_bytes: int = 0
    failure: str = ""  # why it cannot be run


class SizeTable(Record, frozen=True):
    """The sizes that were tried."""

    source: str
    name: str
    limit: int | None
    rows: tuple[SizeRow, ...]  # the smallest first
    largest: int | None = None  # that fits; None: none does, or there is no limit
    not_counted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class SizeSearch:
    """Looks for the largest size that fits."""

    def __init__(self, limit: int, measure: Callable[[int], SizeRow]) -> None:
        """Set up.

        Args:
            limit: The most bytes that the peak may take.
            measure: Runs one size.
        """
        self._limit = limit
        self._measure = measure
        self._rows: dict[int, SizeRow] = {}

    def run(self) -> tuple[tuple[SizeRow, ...], int | None]:
        """Return all that was measured, and the largest size that fits."""
        fits, too_large = self._bracket()
        while too_large is not None and fits is not None and too_large - fits > 1 and len(self._rows) < MAX_RUNS:
            size = self._between(fits, too_large)
            if self._fits(size):
                fits = size
            else:
                too_large = size
        return tuple(row for _, row in sorted(self._rows.items())), fits

    def _bracket(self) -> tuple[int | None, int | None]:
        """Double until a size does not fit: return the last one that does, and the first one that does not."""
        fits: int | None = None
        size = 1
        while size <= MAX_SIZE:
            row = self._row(size)
            is_too_small = bool(row.failure) and fits is None and len(self._rows) < MAX_FAILURES
            if not is_too_small and not self._fits(size):
                return fits, size
            if not row.failure:
                fits = size
            size *= 2
        return fits, None

    def _between(self, fits: int, too_large: int) -> int:
        """Choose a size between two. NOTE [The next size to try]."""
        low, high = self._rows[fits], self._rows[too_large]
        middle = (fits + too_large) // 2
        if high.failure or high.peak_bytes <= low.peak_bytes or len(self._rows) % MIDDLE_EVERY == 0:
            return middle
        share = (self._limit - low.peak_bytes) / (high.peak_bytes - low.peak_bytes)
        return min(max(fits + int(share * (too_large - fits)), fits + 1), too_large - 1)

    def _fits(self, size: int) -> bool:
        row = self._row(size)
        return not row.failure and row.peak_bytes <= self._limit

    def _row(self, size: int) -> SizeRow:
        if size not in self._rows:
            self._rows[size] = self._measure(size)
        return self._rows[size]
