"""Search for the largest size of a batch, a sequence or an image that fits. Every size is measured.

Sizes are doubled until one does not fit; then the boundary between the last two is narrowed down.
"""

from collections.abc import Callable

from gradinspect.analyses.planning.boundary import Boundary, SizeRow
from gradinspect.graph import Record

MAX_SIZE = 2**20
MAX_FAILURES = 7  # the smallest sizes: one sample is too few for a batch norm, 16 pixels for a deep convolution
NEAR = 16  # parts of a size, of which one is the second step away from it
SIZES_WITHOUT_LIMIT = (1, 2, 4, 8, 16, 32, 64)


class SizeTable(Record, frozen=True):
    """The sizes that were tried, or the numbers of ranks."""

    source: str
    name: str
    limit: int | None
    rows: tuple[SizeRow, ...]  # the smallest first
    largest: int | None = None  # size that fits; None: none does, or there is no limit
    smallest: int | None = None  # number of ranks that fits
    not_counted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> int | None:
        """What was searched for."""
        return self.largest if self.smallest is None else self.smallest


class SizeSearch:
    """Looks for the largest size that fits."""

    def __init__(self, limit: int, measure: Callable[[int], SizeRow]) -> None:
        """Set up.

        Args:
            limit: The most bytes that the peak may take.
            measure: Runs one size.
        """
        self._limit = limit
        self.tried = Boundary(limit, measure)

    def run(self) -> tuple[tuple[SizeRow, ...], int | None]:
        """Return all that was measured, and the largest size that fits."""
        fits, too_large = self._bracket()
        if too_large is not None and fits is not None:
            fits = self.tried.narrowed(fits, too_large)
        return self.tried.rows, fits

    def near(self, guess: int, step: int = 1, slope: float = 0.0) -> int | None:
        """Return the largest size that fits, which is probably not far from another one.

        Args:
            guess: The other one.
            step: What sizes have to be multiples of, so far as is known.
            slope: Bytes by which the peak probably grows there with each more; 0: it is not known.
        """
        self.tried.step = step
        size = max(guess // step * step, step)
        distance = 0
        goes_up = self.tried.fits(size)
        end = MAX_SIZE if goes_up else step
        fits = None
        while self.tried.fits(size) == goes_up:
            fits = size if goes_up else None
            if size == end:
                return fits
            distance = self._distance(size, distance, slope)
            size = min(size + distance, end) if goes_up else max(size - distance, end)
        too_large = size if goes_up else self._next_larger(size)
        return self.tried.narrowed(size if fits is None else fits, too_large)

    def _distance(self, size: int, before: int, slope: float) -> int:
        """Return how far to go from a size: where the slope crosses the limit, or ever further."""
        step, row = self.tried.step, self.tried.row(size)
        if slope <= 0 or row.failure:
            return max(2 * before, size // NEAR // step * step if before else step)
        wanted = (self._limit - row.peak_bytes) / slope
        return max(int(wanted if wanted > 0 else step - 1 - wanted) // step * step, 2 * before if before else step)

    def _next_larger(self, fits: int) -> int:
        return min(row.size for row in self.tried.rows if row.size > fits)

    def _bracket(self) -> tuple[int | None, int | None]:
        """Double until a size does not fit: return the last one that does, and the first one that does not."""
        fits: int | None = None
        size = 1
        while size <= MAX_SIZE:
            row = self.tried.row(size)
            is_too_small = bool(row.failure) and fits is None and len(self.tried.rows) < MAX_FAILURES
            if not is_too_small and not self.tried.fits(size):
                return fits, size
            if not row.failure:
                fits = size
            size *= 2
        return fits, None
