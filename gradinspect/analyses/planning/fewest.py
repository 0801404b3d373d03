"""The smallest number of equal modules that fits.

What comes in: peaks, in bytes, of numbers of modules that were changed. What goes out: the number to try next.
"""

MOST_SMALL = 2


class Fewest:
    """Looks for the smallest number of modules that fits: none are too few, all are enough.

    Peaks fall evenly with the number of equal modules, so what is between two of them is tried where the line through
    their peaks meets the limit, then next to it; where that takes too little away twice, in the middle.
    """

    def __init__(self, most: int, limit: int, peak_without: int, peak_with_all: int) -> None:
        """Start with the peaks, in bytes, of none and of all."""
        self._limit = limit
        self._too_few, self._peak_above = 0, peak_without
        self._enough, self._peak_below = most, peak_with_all
        self._num_small = 0  # numbers in a row that have taken away less than half

    @property
    def next(self) -> int | None:
        """The number to try; None: it is found."""
        between = self._enough - self._too_few
        if between < 2:
            return None
        falls = self._peak_above - self._peak_below
        steps = between // 2
        if self._num_small < MOST_SMALL and falls > 0:
            steps = -(-(self._peak_above - self._limit) * between // falls)
        return self._too_few + min(max(steps, 1), between - 1)

    def note(self, number: int, peak: int, *, fits: bool) -> None:
        """Take the peak of a number that was tried."""
        before = self._enough - self._too_few
        if fits:
            self._enough, self._peak_below = number, peak
        else:
            self._too_few, self._peak_above = number, peak
        is_small = 2 * (self._enough - self._too_few) > before
        self._num_small = self._num_small + 1 if is_small and self._num_small < MOST_SMALL else 0
