"""Find periodic stretches of a sequence: `x a b a b a b y` has one of period 2.

What comes in: a sequence of numbers. What goes out: stretches, short periods first. Independent of graphs.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Stretch(NamedTuple):
    """Indices `start` to `stop`, where each value equals the one `period` later if both are inside."""

    start: int
    stop: int
    period: int


def repeated_stretches(values: Sequence[int]) -> Iterator[list[Stretch]]:
    """Yield the stretches whose period fits windows of 1, 2, 4, ... values, one list per width.

    Equal windows get equal numbers, and a window of twice the width is a pair of numbers (Karp, Miller, Rosenberg). Two
    neighboring equal windows less than two widths apart give a period. A window that occurs once is never
    looked at again, so a sequence without repeats costs little more than one pass.
    """
    width = 1
    windows = dict(enumerate(values))
    while windows and width <= len(values):
        gaps = _neighbor_gaps(windows, limit=2 * width)
        stretches = [stretch for period in sorted(gaps) for stretch in _grow(values, gaps[period], period)]
        if stretches:
            yield stretches
        windows = _doubled(windows, width)
        width *= 2


def _neighbor_gaps(windows: dict[int, int], limit: int) -> dict[int, list[int]]:
    """Group window positions by the distance to the next equal window, for distances below `limit`."""
    last: dict[int, int] = {}
    gaps: dict[int, list[int]] = {}
    for place, window in windows.items():
        before = last.get(window)
        if before is not None and place - before < limit:
            gaps.setdefault(place - before, []).append(before)
        last[window] = place
    return gaps


def _grow(values: Sequence[int], places: Iterable[int], period: int) -> Iterator[Stretch]:
    """Extend each position to the whole stretch of this period around it."""
    done = 0
    for place in places:
        if place < done:
            continue
        start, stop = place, place
        while start > done and values[start - 1] == values[start - 1 + period]:
            start -= 1
        while stop + period < len(values) and values[stop] == values[stop + period]:
            stop += 1
        done = stop
        yield Stretch(start, stop + period, period)


def _doubled(windows: dict[int, int], width: int) -> dict[int, int]:
    """Number the windows of twice the width; those that occur once are dropped."""
    pairs = {place: (window, windows[place + width]) for place, window in windows.items() if place + width in windows}
    first: dict[tuple[int, int], int] = {}
    repeated: set[int] = set()
    numbers: dict[int, int] = {}
    for place, pair in pairs.items():
        number = first.setdefault(pair, place)
        if number != place:
            repeated.add(number)
        numbers[place] = number
    return {place: number for place, number in numbers.items() if number in repeated}
