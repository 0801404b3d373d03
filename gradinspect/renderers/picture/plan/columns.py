"""Set a picture that is too high in columns, as text is.

NOTE [Columns]
Graphviz lays out a chain as one column, however long. A part of the boxes of a frame is put into an invisible frame of
its own, beside the part before; the arrows between both are left out of the layout, and drawn by `picture.routing`.

What comes in: the parts of a picture, and where a layout in one column has put them. What goes out: columns, each a run
of parts with the same frame around them. Parts are in topological order, so arrows lead from a column to a later one.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gradinspect.renderers.picture.placed import Extent, Rect, around
from gradinspect.renderers.picture.plan.parts import Box, Columns, Part, ScopeEnd, ScopeStart

MAX_COLUMNS = 8
GUTTER = 34.0  # points between the boxes of two columns
MARGIN = 16.0  # points above and below columns
BESIDE = 0.4  # of the height: a frame that leaves no more to others has a column of its own
STEPS = 12  # heights that are tried to make columns equally high


class Piece(NamedTuple):
    """A box or a frame in a layout of one column."""

    parts: range
    rect: Rect
    inside: tuple["Piece", ...] = ()


class Split(NamedTuple):
    """Columns, and how large they are expected to be."""

    columns: tuple[Columns, ...]  # with those of inner frames
    size: Extent


def split_into_columns(parts: Sequence[Part], boxes: Mapping[int, Rect], sheet: Extent) -> Split:
    """Choose columns.

    Args:
        parts: What is drawn.
        boxes: Where each box and each frame is, by its place in the parts.
        sheet: The size that the picture should have.
    """
    pieces = _pieces(parts, boxes)
    return _split(pieces, sheet) if pieces else Split((), Extent(0, 0))


def _pieces(parts: Sequence[Part], rects: Mapping[int, Rect]) -> tuple[Piece, ...]:
    starts: list[int] = []
    found: list[list[Piece]] = [[]]
    for place, part in enumerate(parts):
        if isinstance(part, ScopeStart):
            starts.append(place)
            found.append([])
        elif isinstance(part, ScopeEnd):
            start, inside = starts.pop(), found.pop()
            found[-1].append(Piece(range(start, place + 1), rects[start], tuple(inside)))
        elif isinstance(part, Box):
            found[-1].append(Piece(range(place, place + 1), rects[place]))
    return tuple(found[0])


def _split(pieces: Sequence[Piece], room: Extent) -> Split:
    whole = around([piece.rect for piece in pieces])
    if whole.height <= room.height:
        return Split((), Extent(whole.width, whole.height))
    best: Split | None = None
    for inner_height in _inner_heights(pieces, whole, room.height):
        inner = {place: _inner(piece, Extent(room.width, inner_height)) for place, piece in enumerate(pieces)}
        found = _set(pieces, inner, room.height)
        if best is None or _badness(found, room) < _badness(best, room):
            best = found
    assert best is not None  # noqa: S101 - there is at least one height
    return best


def _inner_heights(pieces: Sequence[Piece], whole: Rect, height: float) -> list[float]:
    """Say how high frames may be: what others leave, or all of a column of their own."""
    tallest = max(piece.rect.height for piece in pieces)
    others = whole.height - tallest
    return [height, *([height - others] if others < BESIDE * height else [])]


def _inner(piece: Piece, room: Extent) -> Split:
    """Set the contents of a frame in columns if it is too high."""
    if piece.rect.height <= room.height or not piece.inside:
        return Split((), Extent(piece.rect.width, piece.rect.height))
    contents = around([one.rect for one in piece.inside])
    border = Extent(piece.rect.width - contents.width, piece.rect.height - contents.height + MARGIN)
    found = _split(piece.inside, Extent(room.width - border.width, room.height - border.height))
    return Split(found.columns, Extent(found.size.width + border.width, found.size.height + border.height))


def _badness(split: Split, room: Extent) -> tuple[float, float]:
    """Compare splits: what fits is better than what does not, then what is smaller."""
    excess = max(split.size.width - room.width, 0) + max(split.size.height - room.height, 0)
    return excess, split.size.width * split.size.height


def _set(pieces: Sequence[Piece], inner: Mapping[int, Split], height: float) -> Split:
    """Fill columns up to a height, then make them as equal as their number allows."""
    columns = _filled(pieces, inner, height)
    for step in range(1, STEPS):
        lower = _filled(pieces, inner, height * step / STEPS)
        if len(lower) <= len(columns):
            columns = lower
            break
    sizes = [_size(pieces, inner, column) for column in columns]
    runs = tuple(range(pieces[column.start].parts.start, pieces[column.stop - 1].parts.stop) for column in columns)
    nested = [column for split in inner.values() for column in split.columns]
    width = sum(size.width for size in sizes) + GUTTER * (len(columns) - 1)
    return Split((*([runs] if len(runs) > 1 else []), *nested), Extent(width, max(size.height for size in sizes)))


def _filled(pieces: Sequence[Piece], inner: Mapping[int, Split], height: float) -> list[range]:
    """Begin a column where the one before is full."""
    columns: list[range] = []
    start = 0
    for stop in range(1, len(pieces) + 1):
        if stop - start > 1 and _size(pieces, inner, range(start, stop)).height > height:
            columns.append(range(start, stop - 1))
            start = stop - 1
    return [*columns, range(start, len(pieces))]


def _size(pieces: Sequence[Piece], inner: Mapping[int, Split], run: range) -> Extent:
    rects = [pieces[place].rect for place in run]
    whole = around(rects)
    saved = sum(rect.height - inner[place].size.height for place, rect in zip(run, rects, strict=True))
    return Extent(max(whole.width, *(inner[place].size.width for place in run)), whole.height - saved)
