"""Lay out a graph of any size in rows, in a time that grows with its size and no faster.

What comes in: the sizes of boxes, in topological order, and the arrows between them. What goes out: a place for each
box, and which arrows can be drawn as lines.

NOTE [Strips]
A chain of boxes in which each leads to the next alone stands as a strip, one above the other. Strips are ranked by the
longest way to them; a rank that is too wide goes on in a further row, rows that are too many go on in a further column.
An arrow over many rows would cross all that is between, and there is no room for that many: it becomes a reference at
both ends. That is what keeps an unrolled network of 50,000 steps a matter of seconds.
"""

from collections import Counter
from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple, TypeAlias

MAX_STRIP = 20  # boxes in a strip
MAX_ROW = 3000.0  # points
MAX_ROWS_PASSED = 4  # by an arrow
MAX_ARROWS_DRAWN = 12  # from one box or to one; of more, none
LANE = 8.0  # between an arrow and what it passes
GAP_X, GAP_Y, GAP_IN_STRIP, GAP_COLUMN = 22.0, 34.0, 16.0, 60.0
WIDTH_OVER_HEIGHT = 1.4  # of the whole, about that of a screen


Point: TypeAlias = tuple[float, float]


class Size(NamedTuple):
    """The room that a box takes to both sides of the line that its arrows keep to."""

    left: float
    right: float
    height: float

    @property
    def width(self) -> float:
        """From side to side."""
        return self.left + self.right


class Arrow(NamedTuple):
    """An arrow to a later box."""

    tail: int
    head: int


class Rows(NamedTuple):
    """Where everything is."""

    places: list[tuple[float, float]]  # of each box: the left upper corner
    lines: list[tuple[Point, ...] | None]  # of each arrow; None for one that is a reference
    width: float
    height: float


class _Strip:
    """Boxes one above the other, as one."""

    def __init__(self, boxes: list[int], sizes: Sequence[Size]) -> None:
        self.boxes = boxes
        self.left = max(sizes[box].left for box in boxes)
        self.width = self.left + max(sizes[box].right for box in boxes)
        self.height = sum(sizes[box].height for box in boxes) + GAP_IN_STRIP * (len(boxes) - 1)
        self.before: list[int] = []
        self.rank = 0
        self.way_on = 0  # strips on the longest way from here
        self.row = self.column = 0
        self.x = self.y = 0.0


def lay_out_rows(sizes: Sequence[Size], arrows: Sequence[Arrow]) -> Rows:
    """Place boxes and draw arrows.

    Args:
        sizes: Of the boxes, in an order in which arrows lead to later ones only.
        arrows: Without those from a box to itself.
    """
    strips, strip_of = _strips(sizes, arrows)
    for tail, head in {(strip_of[arrow.tail], strip_of[arrow.head]) for arrow in arrows}:
        if tail != head:
            strips[head].before.append(tail)
    rows = _rows(strips)
    width, height = _place(rows, strips)
    places = [(0.0, 0.0)] * len(sizes)
    for strip in strips:
        top = strip.y
        for box in strip.boxes:
            places[box] = strip.x + strip.left - sizes[box].left, top
            top += sizes[box].height + GAP_IN_STRIP
    fans = Counter(end for arrow in arrows for end in (("from", arrow.tail), ("to", arrow.head)))
    lines: list[tuple[Point, ...] | None] = []
    for arrow in arrows:
        first, last = strips[strip_of[arrow.tail]], strips[strip_of[arrow.head]]
        is_near = first is last or (first.column == last.column and 0 < last.row - first.row <= MAX_ROWS_PASSED)
        is_few = max(fans["from", arrow.tail], fans["to", arrow.head]) <= MAX_ARROWS_DRAWN
        start = first.x + first.left, places[arrow.tail][1] + sizes[arrow.tail].height
        end = last.x + last.left, places[arrow.head][1]
        between = [strips[number] for row in rows[first.row + 1 : last.row] for number in row] if is_near else []
        lines.append((start, *_way_past(between, start, end), end) if is_near and is_few else None)
    return Rows(places, lines, width, height)


def _way_past(between: Sequence[_Strip], start: Point, end: Point) -> tuple[Point, ...]:
    """Return points to the right of what is in the way."""
    if not between:
        return ()
    left, right = sorted((start[0], end[0]))
    blocking = [strip for strip in between if strip.x < right + LANE and strip.x + strip.width > left - LANE]
    if not blocking:
        return ()
    lane = max(strip.x + strip.width for strip in blocking) + LANE
    for strip in sorted(between, key=lambda strip: strip.x):
        if strip.x - LANE < lane < strip.x + strip.width + LANE:
            lane = strip.x + strip.width + LANE
    return (lane, min(strip.y for strip in between)), (lane, max(strip.y + strip.height for strip in between))


def _strips(sizes: Sequence[Size], arrows: Sequence[Arrow]) -> tuple[list[_Strip], list[int]]:
    """Join boxes that lead to each other alone."""
    heads: list[set[int]] = [set() for _ in sizes]
    tails: list[set[int]] = [set() for _ in sizes]
    for arrow in arrows:
        heads[arrow.tail].add(arrow.head)
        tails[arrow.head].add(arrow.tail)
    members: list[list[int]] = []
    strip_of = [-1] * len(sizes)
    for box in range(len(sizes)):
        (tail,) = tails[box] if len(tails[box]) == 1 else (-1,)
        if tail >= 0 and len(heads[tail]) == 1 and len(members[strip_of[tail]]) < MAX_STRIP:
            strip_of[box] = strip_of[tail]
            members[strip_of[tail]].append(box)
        else:
            strip_of[box] = len(members)
            members.append([box])
    return [_Strip(boxes, sizes) for boxes in members], strip_of


def _rows(strips: Sequence[_Strip]) -> list[list[int]]:
    """Part strips into ranks, and ranks into rows.

    A strip is numbered by its first box, so what leads to it has a smaller number. Where a way parts, what goes on
    longest comes first and keeps to the column, so that a long network does not drift to the side.
    """
    ranks: list[list[int]] = []
    for number, strip in enumerate(strips):
        strip.rank = max((strips[before].rank + 1 for before in strip.before), default=0)
        if len(ranks) <= strip.rank:
            ranks.append([])
        ranks[strip.rank].append(number)
    for strip in reversed(strips):
        for before in strip.before:
            strips[before].way_on = max(strips[before].way_on, strip.way_on + 1)
    places: dict[int, float] = {}
    rows: list[list[int]] = []
    for rank in ranks:
        preferred = {number: _mean([places[before] for before in strips[number].before], 1.0) for number in rank}
        rank.sort(key=lambda number: (preferred[number], -strips[number].way_on, number))
        places |= {number: place / len(rank) for place, number in enumerate(rank)}
        rows += _cut(rank, strips)
    return rows


def _cut(rank: Sequence[int], strips: Sequence[_Strip]) -> list[list[int]]:
    """Cut a rank that is too wide into rows."""
    rows: list[list[int]] = [[]]
    width = 0.0
    for number in rank:
        if rows[-1] and width + strips[number].width > MAX_ROW:
            rows.append([])
            width = 0.0
        rows[-1].append(number)
        width += strips[number].width + GAP_X
    return rows


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _place(rows: Sequence[Sequence[int]], strips: Sequence[_Strip]) -> tuple[float, float]:
    """Put rows below each other, in as many columns as the page wants; return width and height of all."""
    heights = [max(strips[number].height for number in row) + GAP_Y for row in rows]
    widest = max((sum(strips[number].width + GAP_X for number in row) for row in rows), default=1.0)
    num_columns = max(1, round(sqrt(WIDTH_OVER_HEIGHT * sum(heights) / (widest + GAP_COLUMN))))
    limit = max(sum(heights) / num_columns, *heights) if heights else 0.0
    left = right = top = bottom = 0.0
    column = 0
    for place, (row, height) in enumerate(zip(rows, heights, strict=True)):
        if top and top + height > limit + GAP_Y:
            left, top, column = right + GAP_COLUMN, 0.0, column + 1
        cursor = left
        for number in row:
            strip = strips[number]
            near = [strips[before] for before in strip.before if strips[before].column == column]
            line = min((before.x + before.left for before in near), default=cursor + strip.left)
            strip.x, strip.y, strip.row, strip.column = max(cursor, line - strip.left), top, place, column
            cursor = strip.x + strip.width + GAP_X
            right = max(right, cursor)
        top += height
        bottom = max(bottom, top)
    return right, bottom
