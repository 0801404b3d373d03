"""Draw the arrows from one column to another.

What comes in: a layout with columns, and the arrows that it lacks. What goes out: the layout with these arrows. They go
through the space between columns, and above the columns that they pass; Graphviz would draw them across boxes. What is
said of heights and sides here holds where gradients flow down; other layouts are looked at as if they did.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations, product
from typing import NamedTuple

from gradinspect.renderers.picture.dot.text import attributes
from gradinspect.renderers.picture.placed import Point, Rect, back_from_downward, downward_rect, mirrored, rects_of

MARGIN = 12  # points around the boxes of a column
INSIDE = 7.0  # of it, which arrows use as well
LANE = 2.5  # points between two arrows side by side
MAX_LANES = 3
SPREAD = 10.0  # points between two arrows that leave or enter a box on the same side
BESIDE = 6.0  # points between an arrow and the box above or below it
MAX_LINES_TRIED = 6  # in all orders
CORNER = 5.0  # radius
TIP = 5.5  # length of an arrowhead
EDGE = re.compile(r"^(\t+)(\w+(?::\w+)?) -> (\w+(?::\w+)?)\t\[(.*?)\];$", re.MULTILINE | re.DOTALL)
BACK = re.compile(r'\bdir="?back"?,?\s*')
STARTS_AT_TIP = re.compile(r'\bpos="s,([^"]*)"')


class ColumnArrow(NamedTuple):
    """An arrow from one column to a later one."""

    tail: str  # the names of nodes
    head: str
    columns: tuple[str, ...]  # the names of the clusters from the one to the other
    near_tail: tuple[str, ...]  # the names of the nodes in the same column
    near_head: tuple[str, ...]
    attributes: Mapping[str, str | float]
    turned: tuple[bool, bool] = (False, False)  # whether the first and the last column run back


def with_crossings(placed: str, arrows: Sequence[ColumnArrow], direction: str = "TB") -> str:
    """Add the arrows to a layout, and let those in columns that run back lead from their tails to their heads."""
    if not arrows:
        return placed
    placed = EDGE.sub(_forward, placed)
    rects = {name: downward_rect(rect, direction) for name, rect in rects_of(placed).items()}
    if direction in {"TB", "BT"} and all(_side(arrow, rects) < 0 for arrow in arrows):
        placed = mirrored(placed)
        rects = {name: downward_rect(rect, direction) for name, rect in rects_of(placed).items()}
    arrows = [arrow._replace(columns=_on_the_way(arrow, rects)) for arrow in arrows]
    paths: dict[int, list[Point]] = {}
    for side in (1, -1):  # Graphviz may put a later column on the left
        rightward = {name: _seen_from(rect, side) for name, rect in rects.items()}
        numbers = [number for number, arrow in enumerate(arrows) if _side(arrow, rects) == side]
        ways = [_way(arrows[number], rightward) for number in numbers]
        xs = _lanes(ways, rightward)
        for place, (number, way) in enumerate(zip(numbers, ways, strict=True)):
            path = [(side * x, y) for x, y in _path(way, place, ways, xs)]
            paths[number] = [back_from_downward(point, direction) for point in path]
    lines = []
    for number, arrow in enumerate(arrows):
        values = {**arrow.attributes, "pos": _spline(paths[number])}
        lines.append(f"\t{arrow.tail} -> {arrow.head}\t{attributes(**values)};")
    return "\n".join((placed.rstrip().removesuffix("}"), *lines, "}\n"))


def _side(arrow: ColumnArrow, rects: Mapping[str, Rect]) -> int:
    """Return 1 for an arrow that leads to a column on the right, and -1 for one that leads to the left."""
    return 1 if rects[arrow.columns[0]].left <= rects[arrow.columns[-1]].left else -1


def _on_the_way(arrow: ColumnArrow, rects: Mapping[str, Rect]) -> tuple[str, ...]:
    """Name the columns from the first to the last as they are placed, which may be in another order."""
    first, last = arrow.columns[0], arrow.columns[-1]
    group, ends = first.rpartition("_")[0], sorted(rects[name].left for name in (first, last))
    between = [name for name in rects if name.rpartition("_")[0] == group and ends[0] < rects[name].left < ends[1]]
    side = _side(arrow, rects)
    return first, *sorted(between, key=lambda name: side * rects[name].left), last


def _seen_from(rect: Rect, side: int) -> Rect:
    return rect if side > 0 else Rect(-rect.right, rect.bottom, -rect.left, rect.top)


def _forward(edge: re.Match[str]) -> str:
    indent, head, tail, values = edge.groups()
    if not BACK.search(values):
        return edge[0]
    return f"{indent}{tail} -> {head}\t[{STARTS_AT_TIP.sub(_reversed, BACK.sub('', values))}];"


def _reversed(path: re.Match[str]) -> str:
    tip, *points = path[1].replace("\\\n", "").split()
    return f'pos="e,{tip} {" ".join(reversed(points))}"'


class _Way(NamedTuple):
    """How an arrow leaves its column and enters the other; the space on the right of a column has its name."""

    arrow: ColumnArrow
    out: Point  # where it leaves its box
    out_y: float  # where it enters the space between columns
    leaves_at_end: bool  # of its column
    into: Point
    into_y: float
    enters_at_start: bool  # of its column
    over: float | None  # above the columns that it passes; None if there are none

    @property
    def spaces(self) -> tuple[str, ...]:
        """Name the spaces in which it changes its height."""
        return self.arrow.columns[:1] if self.over is None else (self.arrow.columns[0], self.arrow.columns[-2])

    def ends_in(self, space: str) -> Point:
        """Return at which height it comes into a space from the left, and leaves it to the right."""
        if self.over is None:
            return self.out_y, self.into_y
        return (self.out_y, self.over) if space == self.arrow.columns[0] else (self.over, self.into_y)


def _way(arrow: ColumnArrow, rects: Mapping[str, Rect]) -> _Way:
    columns = [rects[name] for name in arrow.columns]
    is_beside = len(columns) == 2 and arrow.turned[0] != arrow.turned[1]
    tail = [_mirrored(rect, is_back=arrow.turned[0]) for rect in (rects[arrow.tail], columns[0])]
    head = [_mirrored(rect, is_back=arrow.turned[1]) for rect in (rects[arrow.head], columns[-1])]
    near_tail = [_mirrored(rects[name], is_back=arrow.turned[0]) for name in arrow.near_tail]
    near_head = [_mirrored(rects[name], is_back=arrow.turned[1]) for name in arrow.near_head]
    (x, y), out_y, at_end = _way_out(tail[0], near_tail, tail[1], prefers_side=is_beside)
    (into_x, top), into_y, at_start = _way_in(head[0], near_head, head[1], prefers_side=is_beside)
    out, into = _sides(arrow)
    over = max((column.top for column in columns[1:-1]), default=None)
    return _Way(arrow, (x, out * y), out * out_y, at_end, (into_x, into * top), into * into_y, at_start, over)


def _sides(arrow: ColumnArrow) -> tuple[int, int]:
    """Return 1 for a column that runs down and -1 for one that runs back, of the tail and of the head."""
    out, into = (-1 if is_back else 1 for is_back in arrow.turned)
    return out, into


def _mirrored(rect: Rect, *, is_back: bool) -> Rect:
    return Rect(rect.left, -rect.top, rect.right, -rect.bottom) if is_back else rect


def _way_out(box: Rect, others: Sequence[Rect], column: Rect, *, prefers_side: bool) -> tuple[Point, float, bool]:
    """Lead from a box to the space on the right of its column."""
    middle, y = box.middle
    is_free = not any(other.left >= box.right and other.bottom < y < other.top for other in others)
    if is_free and prefers_side:
        return (box.right, y), y, False
    if not any(_overlaps(other, middle) and other.top <= box.bottom for other in others):
        return (middle, box.bottom), column.bottom + INSIDE, True
    if is_free:
        return (box.right, y), y, False
    x = (middle + box.right) / 2
    flipped = [_mirrored(other, is_back=True) for other in others if other.right > x]
    return (x, box.bottom), -_clear_above(-box.bottom, flipped), False


def _way_in(box: Rect, others: Sequence[Rect], column: Rect, *, prefers_side: bool) -> tuple[Point, float, bool]:
    """Lead to a box from the space on the left of its column."""
    middle, y = box.middle
    is_free = not any(other.right <= box.left and other.bottom < y < other.top for other in others)
    if is_free and prefers_side:
        return (box.left, y), y, False
    if not any(_overlaps(other, middle) and other.bottom >= box.top for other in others):
        return (middle, box.top), column.top - INSIDE, True
    if is_free:
        return (box.left, y), y, False
    x = (middle + box.left) / 2
    return (x, box.top), _clear_above(box.top, [other for other in others if other.left < x]), False


def _clear_above(top: float, others: Sequence[Rect]) -> float:
    """Return the lowest height above a box where no other box is in the way."""
    y = top + BESIDE
    for other in sorted(others, key=lambda other: other.bottom):
        if other.bottom < y < other.top + BESIDE:
            y = other.top + BESIDE
    return y


def _lanes(ways: Sequence[_Way], rects: Mapping[str, Rect]) -> dict[tuple[int, str], float]:
    """Place the arrows in each space side by side, so that few cross: the number of the arrow and the space -> x.

    Arrows of one kind to one box share a line, unless they come from the same box as well.
    """
    spaces = {space: following for way in ways for space, following in _spaces(way)}
    xs: dict[tuple[int, str], float] = {}
    for space, following in spaces.items():
        lines: dict[Hashable, list[int]] = {}
        met: Counter[Hashable] = Counter()
        for number, way in enumerate(ways):
            if space in way.spaces:
                kind = (way.arrow.head, way.arrow.attributes.get("color"))
                lines.setdefault((kind, met[kind, way.arrow.tail]), []).append(number)
                met[kind, way.arrow.tail] += 1
        left, right = rects[space].right - INSIDE, rects[following].left + INSIDE
        for place, line in enumerate(_with_few_crossings([*lines.values()], ways, space), start=1):
            for number in line:
                xs[number, space] = left + (right - left) * place / (len(lines) + 1)
    return xs


def _spaces(way: _Way) -> Iterator[tuple[str, str]]:
    """Yield the spaces of an arrow, each with the column on its right."""
    names = way.arrow.columns
    return ((space, names[names.index(space) + 1]) for space in way.spaces)


def _with_few_crossings(lines: list[list[int]], ways: Sequence[_Way], space: str) -> Sequence[list[int]]:
    """Order lines so that they cross least; of many, swap neighbors as long as they cross less often then."""
    ends = [[ways[number].ends_in(space) for number in line] for line in lines]
    costs = [[_crossings(one, other) for other in ends] for one in ends]
    order = list(range(len(lines)))
    if len(lines) <= MAX_LINES_TRIED:
        order = min(
            map(list, permutations(order)),
            key=lambda order: sum(costs[one][other] for one, other in combinations(order, 2)),
        )
    for _ in lines:
        for place in range(len(lines) - 1):
            one, other = order[place : place + 2]
            if costs[one][other] > costs[other][one]:
                order[place : place + 2] = other, one
    return [lines[place] for place in order]


def _crossings(left: Sequence[Point], right: Sequence[Point]) -> int:
    """Count how often the arrows of two lines cross, of which the first is on the left.

    Where one leaves at the height at which the other comes they seem to be one arrow, which is worse than crossing.
    """
    pairs = list(product(left, right))
    crossed = sum((min(one) < other[0] < max(one)) + (min(other) < one[1] < max(other)) for one, other in pairs)
    return crossed + 3 * sum(abs(one[1] - other[0]) < BESIDE for one, other in pairs)


def _path(way: _Way, number: int, ways: Sequence[_Way], xs: Mapping[tuple[int, str], float]) -> list[Point]:
    """Draw one arrow: those that share a side of a box, or a height, are beside each other."""
    first, last = xs[number, way.spaces[0]], xs[number, way.spaces[-1]]
    others = [(place, other) for place, other in enumerate(ways) if place != number]
    beside_first = [(_sign(xs[place, other.spaces[0]] - first), other) for place, other in others]
    (x, y), out_y = way.out, way.out_y
    out, into = _sides(way.arrow)
    if way.leaves_at_end:
        same = [(side, other) for side, other in beside_first if other.leaves_at_end]
        out_y -= out * LANE * min(sum(side < 0 for side, other in same if _column(other) == _column(way)), MAX_LANES)
        x += SPREAD * sum(side for side, other in same if other.arrow.tail == way.arrow.tail) / 2
    beside_last = [(_sign(xs[place, other.spaces[-1]] - last), other) for place, other in others]
    (into_x, top), into_y = way.into, way.into_y
    if way.enters_at_start:
        same = [(side, other) for side, other in beside_last if other.enters_at_start]
        into_y += (
            into
            * LANE
            * min(sum(side > 0 for side, other in same if _column(other, -1) == _column(way, -1)), MAX_LANES)
        )
        into_x += SPREAD * sum(side for side, other in same if other.arrow.head == way.arrow.head) / 2
    between: list[Point] = []
    if way.over is not None:
        lower = {xs[place, other.spaces[0]] for place, other in others if other.over is not None}
        over = way.over + LANE * min(sum(other_x > first for other_x in lower), MAX_LANES)
        between = [(first, over), (last, over)]
    return _straightened(
        [(x, y), (x, out_y), (first, out_y), *between, (last, into_y), (into_x, into_y), (into_x, top)]
    )


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)


def _column(way: _Way, end: int = 0) -> str:
    return way.arrow.columns[end]


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
