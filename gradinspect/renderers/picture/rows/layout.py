"""Lay out a graph of any size in rows, in linear time.

What comes in: the sizes of boxes, in topological order, and the arrows between them. What goes out: a position
for each box, and the arrows that can be drawn as lines.

NOTE [Strips]
A chain of boxes, each leading only to the next, is stacked as a strip. Strips are ranked by the longest path to them; a
rank that is too wide continues in another row, and too many rows continue in another column. An arrow across many rows
would cross everything in between, and there is no room for many of those: it becomes a reference at both ends. That is
how an unrolled network of 50,000 steps is drawn in seconds.
"""

from collections import Counter
from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple, TypeAlias

MAX_STRIP = 20  # boxes in a strip
MAX_STRIP_HEIGHT = 1200.0  # points, if it has more than one box
MAX_ROW = 3000.0  # points
MAX_ROWS_PASSED = 4  # by an arrow
MAX_ARROWS_DRAWN = 12  # from or to one box; if there are more, none is drawn
LANE = 8.0  # between an arrow and the boxes it passes
GAP_X, GAP_Y, GAP_IN_STRIP, GAP_COLUMN = 22.0, 34.0, 16.0, 60.0
WIDTH_OVER_HEIGHT = 1.4  # of the whole picture, like a screen


Point: TypeAlias = tuple[float, float]


class Room(NamedTuple):
    """The room a box takes on both sides of the line its arrows follow."""

    left: float
    right: float
    height: float

    @property
    def width(self) -> float:
        """The total width."""
        return self.left + self.right


class RowArrow(NamedTuple):
    """An arrow to a later box."""

    tail: int
    head: int
    is_drawn: bool = True  # else it only keeps its head below its tail


class Rows(NamedTuple):
    """The finished layout."""

    places: list[tuple[float, float]]  # of each box: its upper left corner
    lines: list[tuple[Point, ...] | None]  # of each arrow; None for a reference
    width: float
    height: float


class _Strip:
    """Boxes stacked as one."""

    def __init__(self, boxes: list[int], sizes: Sequence[Room]) -> None:
        self.boxes = boxes
        self.left = max(sizes[box].left for box in boxes)
        self.width = self.left + max(sizes[box].right for box in boxes)
        self.height = sum(sizes[box].height for box in boxes) + GAP_IN_STRIP * (len(boxes) - 1)
        self.before: list[int] = []
        self.rank = 0
        self.length_below = 0  # strips on the longest path from here
        self.row = self.column = 0
        self.x = self.y = 0.0


def lay_out_rows(sizes: Sequence[Room], arrows: Sequence[RowArrow], one_column: float = 0.0) -> Rows:
    """Place boxes and draw arrows.

    Args:
        sizes: The sizes of the boxes, in topological order.
        arrows: The arrows, without any from a box to itself.
        one_column: Rows that are together no higher than this stay in one column.
    """
    strips, strip_of = _strips(sizes, arrows)
    for tail, head in sorted({(strip_of[arrow.tail], strip_of[arrow.head]) for arrow in arrows}):
        if tail != head:
            strips[head].before.append(tail)
    rows = _rows(strips)
    width, height = _place(rows, strips, one_column)
    places = [(0.0, 0.0)] * len(sizes)
    for strip in strips:
        top = strip.y
        for box in strip.boxes:
            places[box] = strip.x + strip.left - sizes[box].left, top
            top += sizes[box].height + GAP_IN_STRIP
    fans = Counter(end for arrow in arrows if arrow.is_drawn for end in (("from", arrow.tail), ("to", arrow.head)))
    lines: list[tuple[Point, ...] | None] = []
    for arrow in arrows:
        first, last = strips[strip_of[arrow.tail]], strips[strip_of[arrow.head]]
        is_near = first is last or (first.column == last.column and 0 < last.row - first.row <= MAX_ROWS_PASSED)
        is_few = max(fans["from", arrow.tail], fans["to", arrow.head]) <= MAX_ARROWS_DRAWN
        start = first.x + first.left, places[arrow.tail][1] + sizes[arrow.tail].height
        end = last.x + last.left, places[arrow.head][1]
        between = [strips[number] for row in rows[first.row + 1 : last.row] for number in row] if is_near else []
        is_line = arrow.is_drawn and is_near and is_few
        lines.append((start, *_detour(between, start, end), end) if is_line else None)
    return Rows(places, lines, width, height)


def _detour(between: Sequence[_Strip], start: Point, end: Point) -> tuple[Point, ...]:
    """Return points to the right of the strips in the way."""
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


def _strips(sizes: Sequence[Room], arrows: Sequence[RowArrow]) -> tuple[list[_Strip], list[int]]:
    """Join boxes that lead only to each other."""
    heads: list[set[int]] = [set() for _ in sizes]
    tails: list[set[int]] = [set() for _ in sizes]
    for arrow in arrows:
        heads[arrow.tail].add(arrow.head)
        tails[arrow.head].add(arrow.tail)
    members: list[list[int]] = []
    heights: list[float] = []
    strip_of = [-1] * len(sizes)
    for box, size in enumerate(sizes):
        (tail,) = tails[box] if len(tails[box]) == 1 else (-1,)
        strip = strip_of[tail] if tail >= 0 and len(heads[tail]) == 1 else -1
        if strip >= 0 and len(members[strip]) < MAX_STRIP and heights[strip] + size.height <= MAX_STRIP_HEIGHT:
            strip_of[box] = strip
            members[strip].append(box)
            heights[strip] += size.height
        else:
            strip_of[box] = len(members)
            members.append([box])
            heights.append(size.height)
    return [_Strip(boxes, sizes) for boxes in members], strip_of


def _rows(strips: Sequence[_Strip]) -> list[list[int]]:
    """Split strips into ranks, and ranks into rows.

    A strip is numbered by its first box, so its sources have smaller numbers. At a fork the branch that continues
    longest comes first and stays in the column, so that a long network does not drift sideways.
    """
    ranks: list[list[int]] = []
    for number, strip in enumerate(strips):
        strip.rank = max((strips[before].rank + 1 for before in strip.before), default=0)
        if len(ranks) <= strip.rank:
            ranks.append([])
        ranks[strip.rank].append(number)
    for strip in reversed(strips):
        for before in strip.before:
            strips[before].length_below = max(strips[before].length_below, strip.length_below + 1)
    places: dict[int, float] = {}
    rows: list[list[int]] = []
    for rank in ranks:
        preferred = {number: min((places[before] for before in strips[number].before), default=1.0) for number in rank}
        rank.sort(key=lambda number: (preferred[number], -strips[number].length_below, number))
        places |= {number: place / len(rank) for place, number in enumerate(rank)}
        rows += _cut(rank, strips)
    return rows


def _cut(rank: Sequence[int], strips: Sequence[_Strip]) -> list[list[int]]:
    """Split a rank that is too wide into rows."""
    rows: list[list[int]] = [[]]
    width = 0.0
    for number in rank:
        if rows[-1] and width + strips[number].width > MAX_ROW:
            rows.append([])
            width = 0.0
        rows[-1].append(number)
        width += strips[number].width + GAP_X
    return rows


def _place(rows: Sequence[Sequence[int]], strips: Sequence[_Strip], one_column: float) -> tuple[float, float]:
    """Stack rows in as many columns as the aspect ratio needs; return the total width and height."""
    heights = [max(strips[number].height for number in row) + GAP_Y for row in rows]
    area = sum(
        height * (sum(strips[number].width + GAP_X for number in row) + GAP_COLUMN)
        for row, height in zip(rows, heights, strict=True)
    )
    num_columns = 1 if sum(heights) <= one_column else max(1, round(sum(heights) / sqrt(area / WIDTH_OVER_HEIGHT)))
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
