"""Align two sequences of nodes: which one of A is which one of B.

What comes in: for each node three numbers, equal if the nodes are equal as a whole, by operator, or by shape. What goes
out: pairs of positions, rising in both. Independent of graphs.

NOTE [Near-linear]
Equal beginnings and ends are set aside first. What is between them is split at windows that occur once in both, and
what is still long is aligned window by window. Equal pairs of windows are aligned once, as repeated blocks have many.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

Pairs: TypeAlias = list[tuple[int, int]]

EQUAL, SAME_OPERATOR, SAME_SHAPE = 6, 3, 1  # the score of a pair; 0: not a pair
MAX_CELLS: Final = 2_500  # of the largest table in which all pairs are compared
WINDOW: Final = 48
CONTEXT: Final = 6  # nodes of a window that is looked for in both


class Key(NamedTuple):
    """What is compared of one node."""

    whole: int
    operator: int
    shape: int


class Aligner:
    """Aligns many pairs of sequences, equal ones once."""

    def __init__(self) -> None:
        """Start empty."""
        self._known: dict[tuple[tuple[Key, ...], tuple[Key, ...], bool], Pairs] = {}

    def align(self, first: Sequence[Key], second: Sequence[Key]) -> Pairs:
        """Pair the positions of two sequences."""
        pairs: Pairs = []
        waiting = [(0, len(first), 0, len(second), True)]
        while waiting:
            begin, end, start, stop, may_have_anchors = waiting.pop()
            while begin < end and start < stop and first[begin] == second[start]:
                pairs.append((begin, start))
                begin, start = begin + 1, start + 1
            while begin < end and start < stop and first[end - 1] == second[stop - 1]:
                end, stop = end - 1, stop - 1
                pairs.append((end, stop))
            if begin == end or start == stop:
                continue
            if (end - begin) * (stop - start) <= MAX_CELLS:
                pairs += self._by_all_pairs(first, second, (begin, end, start, stop), goes_on=False)
                continue
            anchors = _anchors(first[begin:end], second[start:stop]) if may_have_anchors else []
            if anchors:
                waiting += _between([(begin + x, start + y) for x, y in anchors], (begin, end, start, stop))
                pairs += [(begin + x, start + y) for x, y in anchors]
            else:
                found, rest = self._one_window(first, second, (begin, end, start, stop))
                pairs += found
                waiting.append((*rest, False))
        return sorted(pairs)

    def _one_window(
        self, first: Sequence[Key], second: Sequence[Key], gap: tuple[int, int, int, int]
    ) -> tuple[Pairs, tuple[int, int, int, int]]:
        """Align the first window of a gap, keep the first half of it, and return the rest of the gap."""
        begin, end, start, stop = gap
        near, far = min(begin + WINDOW, end), min(start + WINDOW, stop)
        half = (WINDOW + 1) // 2
        found = self._by_all_pairs(first, second, (begin, near, start, far), goes_on=True)
        kept = [(x, y) for x, y in found if x - begin < half and y - start < half]
        x, y = kept[-1] if kept else (min(begin + half, end) - 1, min(start + half, stop) - 1)
        return kept, (x + 1, end, y + 1, stop)

    def _by_all_pairs(
        self, first: Sequence[Key], second: Sequence[Key], gap: tuple[int, int, int, int], *, goes_on: bool
    ) -> Pairs:
        begin, end, start, stop = gap
        a, b = tuple(first[begin:end]), tuple(second[start:stop])
        known = self._known.get((a, b, goes_on))
        if known is None:
            known = self._known[a, b, goes_on] = _best(a, b, goes_on=goes_on)
        return [(begin + x, start + y) for x, y in known]


def match_score(one: Key, other: Key) -> int:
    """Return how well two nodes match."""
    if one.whole == other.whole:
        return EQUAL
    if one.operator == other.operator:
        return SAME_OPERATOR
    return SAME_SHAPE if one.shape == other.shape else 0


def _best(first: Sequence[Key], second: Sequence[Key], *, goes_on: bool) -> Pairs:
    """Find the rising pairs with the highest total score, comparing all.

    A node without a pair costs one, but not at the end if the sequences go on: its pair may be there.
    """
    rows, columns = len(first), len(second)
    cost = 0 if goes_on else 1
    best = [[-cost * (rows - x)] * (columns + 1) for x in range(rows + 1)]  # the last column is right, the rest is not
    best[rows] = [-cost * (columns - y) for y in range(columns + 1)]
    for x in range(rows - 1, -1, -1):
        one, row, below = first[x], best[x], best[x + 1]
        for y in range(columns - 1, -1, -1):
            pair = match_score(one, second[y])
            skipped = max(below[y], row[y + 1]) - 1
            row[y] = max(below[y + 1] + pair, skipped) if pair else skipped
    pairs: Pairs = []
    x = y = 0
    while x < rows and y < columns:
        pair = match_score(first[x], second[y])
        if pair and best[x][y] == best[x + 1][y + 1] + pair:
            pairs.append((x, y))
            x, y = x + 1, y + 1
        elif best[x][y] == best[x + 1][y] - 1:
            x += 1
        else:
            y += 1
    return pairs


def _anchors(first: Sequence[Key], second: Sequence[Key]) -> Pairs:
    """Pair the windows that occur once in both, as many as rise in both."""
    mine, theirs = dict(_unique_windows(first)), dict(_unique_windows(second))
    return rising([(place, theirs[window]) for window, place in mine.items() if window in theirs])


def _unique_windows(keys: Sequence[Key]) -> Iterator[tuple[tuple[int, ...], int]]:
    wholes = [key.whole for key in keys]
    windows = [tuple(wholes[place : place + CONTEXT]) for place in range(len(wholes) - CONTEXT + 1)]
    counts = Counter(windows)
    return ((window, place) for place, window in enumerate(windows) if counts[window] == 1)


def rising(pairs: Pairs) -> Pairs:
    """Return a longest part of the pairs that rises in both; each number is in one pair only."""
    pairs = sorted(pairs)
    tails: list[int] = []
    ends: list[int] = []  # the pair that each length ends with
    before: list[int] = []
    for index, (_, value) in enumerate(pairs):
        length = bisect_left(tails, value)
        tails[length : length + 1] = [value]
        ends[length : length + 1] = [index]
        before.append(ends[length - 1] if length else -1)
    found: Pairs = []
    index = ends[-1] if ends else -1
    while index >= 0:
        found.append(pairs[index])
        index = before[index]
    return found[::-1]


def _between(anchors: Pairs, gap: tuple[int, int, int, int]) -> Iterator[tuple[int, int, int, int, bool]]:
    begin, end, start, stop = gap
    for x, y in anchors:
        if x > begin or y > start:
            yield begin, x, start, y, True
        begin, start = x + 1, y + 1
    yield begin, end, start, stop, True
