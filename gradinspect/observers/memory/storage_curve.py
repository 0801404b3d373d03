"""What was alive over time, by kind, in few points; and the largest storages, from when to when. Holds no tensor.

NOTE [Kinds over time]
What a storage was for is known only at its end: what is saved for backward is temporary until then. So its bytes enter
the curve when it ends. A point of the curve stands for a short time, and its moment is that of the most that was alive:
the number of the birth that made it. A storage adds its bytes at the first point whose moment is not before its own
birth, and takes them away at the first whose moment is after its end. Where two points become one, the higher moment
stays, and what was added after it belongs to the next point. So at each point the kinds add up to what was alive, to
the byte, and memory is bounded whatever runs.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Generic, NamedTuple, Protocol, TypeVar

from gradinspect.analyses.memory.step import KINDS, Phase, StorageKind

MAX_POINTS = 256
MAX_SPANS = 1000
_PLACES = {kind: place for place, kind in enumerate(KINDS)}
_Sums = list[int]  # one for each kind


class Lived(Protocol):
    """What the curve needs of a storage."""

    birth: int
    num_bytes: int

    @property
    def kind(self) -> StorageKind:
        """What it was for."""


L = TypeVar("L", bound=Lived)


class Lifetime(NamedTuple, Generic[L]):
    """A storage, and the points from which to which it was alive."""

    allocation: L
    first: int
    last: int


def _zeros() -> _Sums:
    return [0] * len(KINDS)


@dataclass
class _Point:
    step: int
    phase: Phase
    num_bytes: int
    moment: int
    changes: _Sums = field(default_factory=_zeros)


class Curve(Generic[L]):
    """Adds up storages at a bounded number of moments."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._points: list[_Point] = []
        self._after = _zeros()  # changes after the last moment
        self._per_point = 1
        self._num_in_point = 0
        self._largest: list[tuple[int, int, int, L]] = []  # a heap: bytes, birth, end

    def grow(self, step: int, phase: Phase, num_bytes: int, birth: int) -> None:
        """Note how much is alive after a birth."""
        last = self._points[-1] if self._points else None
        if last is not None and self._num_in_point < self._per_point and (last.step, last.phase) == (step, phase):
            self._num_in_point += 1
            if num_bytes > last.num_bytes:
                last.num_bytes, last.moment = num_bytes, birth
                last.changes, self._after = _sum(last.changes, self._after), _zeros()
            return
        self._points.append(_Point(step, phase, num_bytes, birth, self._after))
        self._after = _zeros()
        self._num_in_point = 1
        if len(self._points) > MAX_POINTS:
            self._per_point *= 2
            self._halve()

    def end(self, allocation: L, now: int) -> None:
        """Note that a storage has ended, after that birth."""
        self._add(bisect_left(self._points, allocation.birth, key=_moment), allocation)
        self._add(bisect_right(self._points, now, key=_moment), allocation, -1)
        entry = allocation.num_bytes, allocation.birth, now, allocation
        if len(self._largest) < MAX_SPANS:
            heapq.heappush(self._largest, entry)
        elif entry[:2] > self._largest[0][:2]:
            heapq.heapreplace(self._largest, entry)

    def points(self, alive: Iterable[L]) -> Iterator[tuple[int, Phase, int, _Sums]]:
        """Yield step, phase, the most that was alive, and its kinds, in time.

        Args:
            alive: What has not ended.
        """
        changes = [list(point.changes) for point in self._points]
        for allocation in alive:
            place = bisect_left(self._points, allocation.birth, key=_moment)
            if place < len(changes):
                changes[place][_PLACES[allocation.kind]] += allocation.num_bytes
        for point, sums in zip(self._points, accumulate(changes, _sum), strict=True):
            yield point.step, point.phase, point.num_bytes, sums

    def spans(self, alive: Iterable[L]) -> list[Lifetime[L]]:
        """Return the largest storages that were alive at one of the points, the largest first."""
        living = ((allocation.num_bytes, allocation.birth, None, allocation) for allocation in alive)
        largest = heapq.nlargest(MAX_SPANS, (*self._largest, *living), key=lambda entry: entry[:2])
        return [span for _, _, end, allocation in largest if (span := self._span(allocation, end)) is not None]

    def _span(self, allocation: L, end: int | None) -> Lifetime[L] | None:
        first = bisect_left(self._points, allocation.birth, key=_moment)
        stop = len(self._points) if end is None else bisect_right(self._points, end, key=_moment)
        return Lifetime(allocation, first, stop - 1) if first < stop else None

    def _add(self, place: int, allocation: L, sign: int = 1) -> None:
        changes = self._points[place].changes if place < len(self._points) else self._after
        changes[_PLACES[allocation.kind]] += sign * allocation.num_bytes

    def _halve(self) -> None:
        """Merge adjacent points of one phase. NOTE [Kinds over time]."""
        joined: list[_Point] = []
        is_pair = False
        carried = _zeros()
        for point in self._points:
            point.changes, carried = _sum(point.changes, carried), _zeros()
            before = joined[-1] if joined else None
            if before is None or is_pair or (before.step, before.phase) != (point.step, point.phase):
                joined.append(point)
                is_pair = False
                continue
            is_pair = True
            if point.num_bytes > before.num_bytes:
                before.num_bytes, before.moment = point.num_bytes, point.moment
                before.changes = _sum(before.changes, point.changes)
            else:
                carried = point.changes
        self._after = _sum(self._after, carried)
        self._points = joined


def _moment(point: _Point) -> int:
    return point.moment


def _sum(one: _Sums, other: _Sums) -> _Sums:
    return [first + second for first, second in zip(one, other, strict=True)]
