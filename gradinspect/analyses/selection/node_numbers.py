"""The identities of the nodes of one graph, in a few bytes: most of them follow one another."""

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet


class NodeNumbers(AbstractSet[int]):
    """A frozen set of numbers, kept as its runs. One of a million numbers in a row takes as much as one of two."""

    __slots__ = ("_firsts", "_num", "_stops")

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        """Find the runs; a number that comes twice counts once."""
        self._firsts, self._stops = array("Q"), array("Q")  # 2**64 - 1 is of a leaf
        stop = None
        for number in sorted(numbers):
            if stop is None or number > stop:
                if stop is not None:
                    self._stops.append(stop)
                self._firsts.append(number)
            stop = number + 1
        if stop is not None:
            self._stops.append(stop)
        self._num = sum(self._stops) - sum(self._firsts)

    def __contains__(self, number: object) -> bool:
        """Return whether a number is there."""
        if not isinstance(number, int):
            return False
        run = bisect_right(self._firsts, number) - 1
        return run >= 0 and number < self._stops[run]

    def __iter__(self) -> Iterator[int]:
        """Yield the numbers in order."""
        for first, stop in zip(self._firsts, self._stops, strict=True):
            yield from range(first, stop)

    def __len__(self) -> int:
        """Count the numbers."""
        return self._num
