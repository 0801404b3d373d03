"""Lay out module calls as frames around their boxes: each on its own, from the inside out, then nested.

What comes in: the parts of a picture, the sizes of its boxes, the arrows. What goes out: a place for each box and each
frame, and the arrows that can be drawn as lines.

NOTE [Frames in rows]
The items of a frame are a port above all others, where arrows from outside enter, its own boxes, the frames directly
inside of it, and a port below all others, where arrows leave. An arrow between boxes of different frames is a chain of
pieces: from its tail out of each frame around it, across the innermost frame around both ends, into each frame around
its head. It is drawn if each piece is, otherwise it is a reference.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from gradinspect.analyses.structure.folding import Scope
from gradinspect.renderers.picture.plan.parts import Box, Part, ScopeEnd, ScopeStart
from gradinspect.renderers.picture.rows.layout import GAP_Y, LANE, Point, Room, RowArrow, Rows, lay_out_rows

MAX_LEVELS = 40  # of nested frames; boxes deeper inside are in the innermost of these
HEAD, PAD = 12.0, 10.0  # above what is in a frame, whose first row is only a port and has room for the title; beside it
ONE_COLUMN = 2500.0  # points; a frame lower than this is not split into columns
PORT = Room(LANE, LANE, 0.0)
ABOVE = 0  # the first item of a frame

Line: TypeAlias = tuple[Point, ...]


class ScopeRoom(NamedTuple):
    """The room of an expanded scope."""

    scope: Scope
    level: int
    left: float
    top: float
    width: float
    height: float


class Nested(NamedTuple):
    """The finished layout."""

    places: list[Point]  # of each box: its upper left corner
    frames: list[ScopeRoom]  # outer ones first
    lines: list[Line | None]  # of each arrow; None for a reference
    width: float
    height: float


class _Group:
    """A frame under construction, or the whole picture, which has no scope, no ports and no parent."""

    def __init__(self, scope: Scope | None, outer: "_Group | None") -> None:
        self.scope = scope
        self.outer = outer
        self.level: int = -1 if outer is None else outer.level + 1
        self.sizes: list[Room] = [] if outer is None else [PORT]
        self.place = -1 if outer is None else outer.add(PORT)  # among the items of the outer one; its size comes later
        self.arrows: dict[RowArrow, int] = {}  # between items, to their number
        self.rows = Rows([], [], 0.0, 0.0)
        self.left = self.top = 0.0  # of what is inside

    def add(self, item: Room) -> int:
        self.sizes.append(item)
        return len(self.sizes) - 1

    @property
    def below(self) -> int:
        return len(self.sizes) - 1

    def connect(self, tail: int, head: int, *, is_drawn: bool = True) -> int:
        return self.arrows.setdefault(RowArrow(tail, head, is_drawn), len(self.arrows))

    def separate_ports(self) -> None:
        """Keep the ports above and below everything else."""
        tails, heads = {arrow.tail for arrow in self.arrows}, {arrow.head for arrow in self.arrows}
        for item in range(1, self.below):
            if item not in heads:
                self.connect(ABOVE, item, is_drawn=False)
            if item not in tails:
                self.connect(item, self.below, is_drawn=False)

    def shifted(self, point: Point) -> Point:
        return point[0] + self.left, point[1] + self.top


class _Spot(NamedTuple):
    """Where a box is: an item of a group."""

    group: _Group
    place: int


class _Piece(NamedTuple):
    """A piece of an arrow."""

    group: _Group
    number: int  # of the arrow between two items


def lay_out_nested(
    parts: Sequence[Part], sizes: Sequence[Room], arrows: Sequence[RowArrow], title_width: Callable[[Scope], float]
) -> Nested:
    """Place boxes and frames, and draw arrows.

    Args:
        parts: Boxes, and where frames begin and end, in topological order.
        sizes: The sizes of the boxes.
        arrows: The arrows between boxes, without any from a box to itself.
        title_width: The room that the title of a scope needs.
    """
    groups, spots = _groups(parts, sizes)
    chains = [_pieces(spots[arrow.tail], spots[arrow.head]) for arrow in arrows]
    for group in reversed(groups):  # inner ones come after the outer
        if group.outer is None or group.scope is None:
            group.rows = lay_out_rows(group.sizes, list(group.arrows))
        else:
            group.separate_ports()
            group.rows = lay_out_rows(group.sizes, list(group.arrows), ONE_COLUMN)
            group.outer.sizes[group.place] = _size_around(group, title_width(group.scope))
    for group in groups:
        if group.outer is not None:
            left, top = group.outer.shifted(group.outer.rows.places[group.place])
            group.left, group.top = left + PAD, top + HEAD
    places = [spot.group.shifted(spot.group.rows.places[spot.place]) for spot in spots]
    whole = groups[0].rows
    return Nested(places, list(_frames(groups)), list(map(_line, chains)), whole.width, whole.height)


def _groups(parts: Sequence[Part], sizes: Sequence[Room]) -> tuple[list[_Group], list[_Spot]]:
    """Return the groups, outer ones first, and the spot of each box."""
    groups = [_Group(None, None)]
    spots: list[_Spot] = []
    path = [groups[0]]
    for part in parts:
        match part:
            case Box():
                spots.append(_Spot(path[-1], path[-1].add(sizes[len(spots)])))
            case ScopeStart() if len(path) <= MAX_LEVELS:
                groups.append(_Group(part.scope, path[-1]))
                path.append(groups[-1])
            case ScopeStart():
                path.append(path[-1])
            case ScopeEnd():
                path.pop()
    for group in groups[1:]:
        group.add(PORT)
    return groups, spots


def _pieces(tail: _Spot, head: _Spot) -> list[_Piece]:
    """Split an arrow: NOTE [Frames in rows]."""
    out: list[_Piece] = []
    into: list[_Piece] = []
    while tail.group is not head.group:
        if tail.group.level >= head.group.level:
            out.append(_Piece(tail.group, tail.group.connect(tail.place, tail.group.below)))
            tail = _outwards(tail.group)
        else:
            into.append(_Piece(head.group, head.group.connect(ABOVE, head.place)))
            head = _outwards(head.group)
    across = _Piece(tail.group, tail.group.connect(tail.place, head.place))
    return [*out, across, *reversed(into)]


def _outwards(group: _Group) -> _Spot:
    assert group.outer is not None  # noqa: S101 - everything is inside of the outermost
    return _Spot(group.outer, group.place)


def _size_around(group: _Group, title_width: float) -> Room:
    """Return the room of a frame. Arrows to it follow the line of its upper port."""
    left = PAD + group.rows.places[ABOVE][0] + PORT.left
    width = max(group.rows.width + 2 * PAD, title_width)
    return Room(left, width - left, HEAD + _height(group))


def _line(chain: Sequence[_Piece]) -> Line | None:
    """Join the lines of the pieces; between two, the arrow passes through a port and the border of its frame."""
    points: list[Point] = []
    for piece, after in zip(chain, (*chain[1:], None), strict=True):
        line = piece.group.rows.lines[piece.number]
        if line is None:
            return None
        inside = [piece.group.shifted(point) for point in line]
        points += inside[1:-1] if points else inside[:-1]
        if after is None:
            points.append(inside[-1])
        elif after.group is piece.group.outer:  # out of a frame
            points += [inside[-1], (inside[-1][0], piece.group.top + _height(piece.group))]
        else:  # into a frame
            x, y = after.group.shifted(after.group.rows.places[ABOVE])
            points += [(x + PORT.left, after.group.top - HEAD), (x + PORT.left, y)]
    return tuple(points)


def _height(group: _Group) -> float:
    """Return the height below the head. The port below is in the last row, and nothing has to follow it."""
    return group.rows.height - GAP_Y + PAD


def _frames(groups: Sequence[_Group]) -> Iterator[ScopeRoom]:
    for group in groups:
        if group.scope is not None and group.outer is not None:
            size = group.outer.sizes[group.place]
            yield ScopeRoom(group.scope, group.level, group.left - PAD, group.top - HEAD, size.width, size.height)
