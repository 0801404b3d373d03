"""Find where arrows cross, and name the targets of arrows that cross many others instead of drawing them.

What comes in: a layout, or the arrows of a drawing. What goes out: places where arrows cross; drawings with fewer.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import TypeAlias

from gradinspect.renderers.picture.edge_labels import paths_of
from gradinspect.renderers.picture.placed import Point, Rect, rects_of
from gradinspect.renderers.picture.plan.arrows import Arrow
from gradinspect.renderers.picture.plan.drawing import Drawing
from gradinspect.renderers.picture.plan.parts import columns_of, group_between

NEAR = 3.0  # points: crossings that are no farther apart are one
LEAST_SINE = 0.2  # of the angle; less is running along each other
ENDS = 2  # points of an arrow that may be inside of its own boxes, which have no straight border
INSIDE = 2.0  # points from the border of a box
CELL = 12.0  # points: only what is near each other is compared
Place: TypeAlias = tuple[int, int]  # in units of NEAR
Segment: TypeAlias = tuple[Point, Point]


def count_crossings(placed: str) -> int:
    """Count the places where arrows cross, as one sees them: several that run along each other cross another once."""
    return len(set[Place]().union(*_crossings(paths_of(placed)).values()))


def count_hidden(placed: str) -> int:
    """Count the pairs of an arrow and a box in which the arrow goes behind the box."""
    boxes = [rect for name, rect in rects_of(placed).items() if not name.startswith("cluster")]
    inner = [Rect(box.left + INSIDE, box.bottom + INSIDE, box.right - INSIDE, box.top - INSIDE) for box in boxes]
    return sum(any(map(box.holds, path[ENDS:-ENDS])) for path in paths_of(placed) for box in inner)


def with_targets_named(drawing: Drawing, placed: str, most: int) -> Drawing:
    """Name the target of all arrows between columns to one box that cross the most others, until few cross.

    The first part of the way from a box to its leaves is always drawn.

    Args:
        drawing: A drawing in columns.
        placed: Its layout.
        most: How many arrows may cross.
    """
    paths = paths_of(placed)
    places = _crossings(paths)
    arrows = _between_columns(drawing)
    heads = {len(paths) - len(arrows) + number: arrow.head for number, arrow in enumerate(arrows) if not arrow.is_trunk}
    named: set[int] = set()
    while len(set[Place]().union(*places.values())) > most:
        numbers = Counter(heads[path] for pair in places for path in pair if path in heads for _ in places[pair])
        if not numbers:
            break
        named.add(head := max(numbers, key=lambda head: (numbers[head], -head)))
        places = {pair: at for pair, at in places.items() if head not in (heads.get(path) for path in pair)}
    moved = {arrow for arrow in arrows if arrow.head in named and not arrow.is_trunk}
    drawn = tuple(arrow for arrow in drawing.arrows if arrow not in moved)
    return drawing._replace(arrows=drawn, references=(*drawing.references, *sorted(moved)))


def _between_columns(drawing: Drawing) -> list[Arrow]:
    """List the arrows that come last in the layout."""
    columns = columns_of(drawing.parts, drawing.columns)
    return [arrow for arrow in drawing.arrows if group_between(columns[arrow.tail], columns[arrow.head]) is not None]


def _crossings(paths: Sequence[Sequence[Point]]) -> Mapping[tuple[int, int], set[Place]]:
    """Find where each two paths cross."""
    cells = defaultdict[Place, list[tuple[int, Segment]]](list)
    for number, path in enumerate(paths):
        for segment in pairwise(path):
            for cell in _cells(segment):
                cells[cell].append((number, segment))
    found = defaultdict[tuple[int, int], set[Place]](set)
    for near in cells.values():
        for (one, first), (other, second) in combinations(near, 2):
            if one != other and (place := _crossing(first, second)) is not None:
                found[one, other].add((round(place[0] / NEAR), round(place[1] / NEAR)))
    return found


def _cells(segment: Segment) -> Iterator[Place]:
    """Yield the squares that a segment may be in."""
    across, up = (sorted(int(point[axis] // CELL) for point in segment) for axis in (0, 1))
    return ((x, y) for x in range(across[0], across[1] + 1) for y in range(up[0], up[1] + 1))


def _crossing(one: Segment, other: Segment) -> Point | None:
    sides = [_side(*one, point) for point in other]
    if sides[0] * sides[1] >= 0 or _side(*other, one[0]) * _side(*other, one[1]) >= 0:
        return None
    (dx, dy), (other_dx, other_dy) = _step(one), _step(other)
    if abs(dx * other_dy - dy * other_dx) < LEAST_SINE * math.hypot(dx, dy) * math.hypot(other_dx, other_dy):
        return None
    share = sides[0] / (sides[0] - sides[1])
    return other[0][0] + share * other_dx, other[0][1] + share * other_dy


def _step(segment: Segment) -> Point:
    return segment[1][0] - segment[0][0], segment[1][1] - segment[0][1]


def _side(start: Point, end: Point, point: Point) -> float:
    return (end[0] - start[0]) * (point[1] - start[1]) - (end[1] - start[1]) * (point[0] - start[0])
