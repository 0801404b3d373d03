"""Draw the arrows from one column to another.

What comes in: a layout with columns, and the arrows that it lacks. What goes out: the layout with these arrows. They go
through the space between columns, and above the columns that they pass; Graphviz would draw them across boxes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gradinspect.renderers.picture.dot.text import attributes
from gradinspect.renderers.picture.placed import Point, Rect, rects_of

MARGIN = 12  # points around the boxes of a column
INSIDE = 7.0  # of it, which arrows use as well
LANE = 2.5  # points between two arrows side by side
MAX_LANES = 4
BESIDE = 6.0  # points between an arrow and the box above or below it
CORNER = 5.0  # radius
TIP = 5.5  # length of an arrowhead


class ColumnArrow(NamedTuple):
    """An arrow from one column to a later one."""

    tail: str  # the names of nodes
    head: str
    columns: tuple[str, ...]  # the names of the clusters from the one to the other
    near_tail: tuple[str, ...]  # the names of the nodes in the same column
    near_head: tuple[str, ...]
    attributes: Mapping[str, str | float]


def with_crossings(placed: str, crossings: Sequence[ColumnArrow]) -> str:
    """Add the arrows to a layout."""
    if not crossings:
        return placed
    rects = rects_of(placed)
    used: Counter[str] = Counter()
    total = Counter(name for crossing in crossings for name in _gutters(crossing))
    lines: list[str] = []
    for crossing in crossings:
        path = _path(crossing, rects, used, total)
        values = {**crossing.attributes, "pos": _spline(path)}
        lines.append(f"\t{crossing.tail} -> {crossing.head}\t{attributes(**values)};")
    return "\n".join((placed.rstrip().removesuffix("}"), *lines, "}\n"))


def _gutters(crossing: ColumnArrow) -> tuple[str, ...]:
    """Name the spaces that an arrow uses, each by the column on its left."""
    return tuple(dict.fromkeys((crossing.columns[0], crossing.columns[-2])))


def _path(crossing: ColumnArrow, rects: Mapping[str, Rect], used: Counter[str], total: Counter[str]) -> list[Point]:
    columns = [rects[name] for name in crossing.columns]
    lane = LANE * (used[crossing.columns[0]] % MAX_LANES)
    xs: list[float] = []
    for name in _gutters(crossing):
        used[name] += 1
        place = crossing.columns.index(name)
        left, right = columns[place].right - INSIDE, columns[place + 1].left + INSIDE
        xs.append(left + (right - left) * used[name] / (total[name] + 1))
    start = _way_out(rects[crossing.tail], [rects[name] for name in crossing.near_tail], columns[0], xs[0], lane)
    end = _way_in(rects[crossing.head], [rects[name] for name in crossing.near_head], columns[-1], xs[-1], lane)
    over = max((column.top for column in columns[1:-1]), default=0.0) - INSIDE + lane
    between = [(xs[0], over), (xs[-1], over)] if len(columns) > 2 else []
    return _straightened([*start, *between, *end])


def _way_out(box: Rect, others: Sequence[Rect], column: Rect, x: float, lane: float) -> list[Point]:
    """Lead from a box to the space on the right of its column."""
    middle, y = box.middle
    if not any(_overlaps(other, middle) and other.top <= box.bottom for other in others):
        low = column.bottom + INSIDE - lane
        return [(middle, box.bottom), (middle, low), (x, low)]
    if not any(other.left >= box.right and other.bottom < y < other.top for other in others):
        return [(box.right, y), (x, y)]
    start = (middle + box.right) / 2
    return [(start, box.bottom), (start, box.bottom - BESIDE), (x, box.bottom - BESIDE)]


def _way_in(box: Rect, others: Sequence[Rect], column: Rect, x: float, lane: float) -> list[Point]:
    """Lead to a box from the space on the left of its column."""
    middle, y = box.middle
    if not any(_overlaps(other, middle) and other.bottom >= box.top for other in others):
        high = column.top - INSIDE + lane
        return [(x, high), (middle, high), (middle, box.top)]
    if not any(other.right <= box.left and other.bottom < y < other.top for other in others):
        return [(x, y), (box.left, y)]
    end = (middle + box.left) / 2
    return [(x, box.top + BESIDE), (end, box.top + BESIDE), (end, box.top)]


def _overlaps(rect: Rect, x: float) -> bool:
    return rect.left - 1 <= x <= rect.right + 1


def _straightened(points: Iterable[Point]) -> list[Point]:
    """Leave out points that are on the way between two others, or twice."""
    kept: list[Point] = []
    for point in points:
        if kept and _is_near(kept[-1], point):
            continue
        if len(kept) > 1 and _in_line(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(point)
    return kept


def _is_near(one: Point, other: Point) -> bool:
    return abs(one[0] - other[0]) + abs(one[1] - other[1]) < 0.01


def _in_line(first: Point, second: Point, third: Point) -> bool:
    return any(first[axis] == second[axis] == third[axis] for axis in (0, 1))


def _spline(points: Sequence[Point]) -> str:
    """Write a path with round corners as Graphviz does, without the arrowhead but with its tip."""
    (before, tip) = points[-2:]
    shortened = [*points[:-1], _towards(tip, before, TIP)]
    curve = [shortened[0]]
    for place in range(1, len(shortened) - 1):
        corner = shortened[place]
        radius = min(CORNER, *(_length(corner, shortened[place + side]) / 2 for side in (-1, 1)))
        begin, end = _towards(corner, shortened[place - 1], radius), _towards(corner, shortened[place + 1], radius)
        curve += [
            *_straight(curve[-1], begin),
            _towards(begin, corner, radius / 2),
            _towards(end, corner, radius / 2),
            end,
        ]
    curve += _straight(curve[-1], shortened[-1])
    return f"e,{tip[0]:.2f},{tip[1]:.2f} " + " ".join(f"{x:.2f},{y:.2f}" for x, y in curve)


def _straight(start: Point, end: Point) -> Iterator[Point]:
    for share in (1 / 3, 2 / 3, 1):
        yield start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def _towards(start: Point, end: Point, distance: float) -> Point:
    share = distance / max(_length(start, end), 0.01)
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def _length(one: Point, other: Point) -> float:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])
