"""Lay out what may be drawn: in columns if it is too high, and so that few arrows cross.

What comes in: a graph, options, a Graphviz program, which scopes are open. What goes out: `Fitted` drawings.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from time import monotonic
from typing import Final, NamedTuple

from gradinspect.analyses.structure.folding import fold_graph
from gradinspect.graph import Graph
from gradinspect.renderers.picture.crossings import count_crossings, count_hidden, with_targets_named
from gradinspect.renderers.picture.dot.document import caption_height, crossings_of, part_names, write_dot
from gradinspect.renderers.picture.graphviz import Engine, LayoutError, lay_out
from gradinspect.renderers.picture.paper import COLUMN
from gradinspect.renderers.picture.placed import Extent, Rect, around, downward_rect, rects_of, size_in_points
from gradinspect.renderers.picture.plan.columns import Split, split_into_columns
from gradinspect.renderers.picture.plan.drawing import Drawing, in_columns, plan_opened
from gradinspect.renderers.picture.plan.openings import Place, opens
from gradinspect.renderers.picture.plan.parts import DrawOptions, FitTo, PartChooser
from gradinspect.renderers.picture.routing import with_crossings

SHEETS: Final[Mapping[FitTo, Extent]] = {
    "screen": Extent(900, 675),  # 1,200 x 900 pixels at 96 dpi
    "a4": Extent(482, 728),  # 210 x 297 mm, less 20 mm on each side
    "slide": Extent(960, 540),  # 16:9
}
PADDING = 22.0  # points that Graphviz leaves around a picture, both sides together
LEAST_AREA = 4000.0  # square points of a box and what is around it
TOLERANCE = 1.04  # times the sheet: what fewer crossings may cost, and how exact a screen is
MAX_SPLITS = 3  # layouts in columns of one drawing
SLACK = 1.2  # times the width: columns that are expected to be wider are not tried


class Fitted(NamedTuple):
    """A drawing, and how large it is without its caption."""

    drawing: Drawing
    options: DrawOptions  # which may say less than what was asked for
    size: Extent
    caption_width: float
    fits: bool


class Layouter:
    """Lays out what might be opened."""

    def __init__(self, graph: Graph, options: DrawOptions, engine: Engine, time_limit_s: float) -> None:
        self.graph = graph
        self.options = options
        self.engine = engine
        self.sheet = sheet_of(options)
        self.end = monotonic() + time_limit_s
        self.folded = fold_graph(graph, shapes=options.fold_shapes)
        self.chooser = PartChooser(graph, options)
        self.slack = SLACK
        self.tolerance = TOLERANCE if options.fit_to == "screen" else 1.0  # paper and slides have edges
        self.max_boxes = int(self.sheet.width * self.sheet.height / LEAST_AREA)

    def drawing(self, places: frozenset[Place]) -> Drawing:
        """Choose boxes with these scopes open."""
        return plan_opened(self.chooser, self.folded, opens(places))

    def fitted(self, places: frozenset[Place]) -> Fitted:
        """Lay out a picture with these scopes open."""
        return self.set_in_columns(self.drawing(places))

    def set_in_columns(self, drawing: Drawing) -> Fitted:
        """Lay out a drawing, in columns if it is too high otherwise."""
        unknown = Fitted(drawing, self.options, Extent(math.inf, math.inf), self.sheet.width, fits=False)
        if len(drawing.boxes) > self.max_boxes:
            return unknown
        placed = self._lay_out(drawing)
        if placed is None:
            return unknown
        room = self._room_for(drawing)
        one = self._measured(drawing, placed, room)
        is_hopeless = one.size.width * one.size.height > room.width * room.height * self.slack**2
        if one.fits or is_hopeless:
            return one
        rects, best, height = _rects(drawing, placed, self.options.direction), one, self._downward(room).height
        if len(rects) < len(part_names(drawing.parts)):
            return one
        for _ in range(MAX_SPLITS):
            split = split_into_columns(drawing.parts, rects, Extent(self._downward(room).width, height))
            found = self._apart(drawing, split, room)
            if found is None or found.fits:
                return found or best
            best = min(best, found, key=lambda one: excess_of(one.size, room))
            too_high = self._downward(found.size).height - self._downward(room).height
            # Boxes of one rank are as far apart in all columns, so columns are higher than expected.
            height = min(height, split.size.height) - max(too_high, 0) - 1
        return best

    def _apart(self, drawing: Drawing, split: Split, room: Extent) -> Fitted | None:
        """Lay out in columns, if they are not expected to be too wide."""
        if not split.columns or split.size.width > self._downward(room).width * self.slack:
            return None
        return self._laid_out(in_columns(drawing, split.columns), room)

    def _laid_out(self, drawing: Drawing, room: Extent) -> Fitted | None:
        """Lay out in columns from left to right: Graphviz puts what it is given first on either side."""
        placed = self._lay_out(drawing)
        if placed is None:
            return None
        reversed_ones = self._from_right_to_left(drawing, placed)
        if reversed_ones:
            other = drawing._replace(mirrored=reversed_ones)
            again = self._lay_out(other)
            if again is not None and len(self._from_right_to_left(other, again)) < len(reversed_ones):
                drawing, placed = other, again
        return self._measured(drawing, placed, room)

    def _from_right_to_left(self, drawing: Drawing, placed: str) -> frozenset[int]:
        """Return which columns are read backward."""
        if self.options.direction not in ("TB", "BT"):  # rows, which are written in their order
            return frozenset()
        rects = _rects(drawing, placed, self.options.direction)
        found = set[int]()
        for number, group in enumerate(drawing.columns):
            lefts = [min((rects[place].left for place in run if place in rects), default=0.0) for run in group]
            if lefts == sorted(lefts, reverse=True):
                found.add(number)
        return frozenset(found)

    def _downward(self, size: Extent) -> Extent:
        """Return a size as if gradients flowed down."""
        return size if self.options.direction in ("TB", "BT") else Extent(size.height, size.width)

    def untangled(self, found: Fitted) -> Fitted:
        """Let as few arrows cross as in one column: let columns run back, or name targets beside the boxes."""
        most = self._num_crossings(in_columns(found.drawing, ())) if found.drawing.columns else 0
        best, number = found, self._num_crossings(found.drawing) if found.drawing.columns else 0
        named = partial(self._with_targets_named, most=most)
        attempts: list[Callable[[Fitted], Fitted | None]] = [self._turned, *[named] * MAX_SPLITS]
        for attempt in attempts:
            if number <= most:
                break
            other = attempt(best)
            crossed = number if other is None else self._num_crossings(other.drawing)
            if other is not None and crossed < number and (not found.fits or self._excess(other) <= TOLERANCE):
                best, number = other._replace(fits=found.fits), crossed
        return best

    def _turned(self, found: Fitted) -> Fitted | None:
        """Let every second column run back, as a U does."""
        drawing = found.drawing
        return self._laid_out(in_columns(drawing, drawing.columns, turns=True), self._room_for(drawing))

    def _with_targets_named(self, found: Fitted, most: int) -> Fitted | None:
        drawing = with_targets_named(found.drawing, self._routed(found.drawing), most)
        if len(drawing.arrows) == len(found.drawing.arrows):
            return None
        named = self._laid_out(drawing, self._room_for(drawing))
        is_good = named is not None and self._excess(named) <= TOLERANCE
        return named if is_good else self.set_in_columns(in_columns(drawing, ()))

    def _excess(self, found: Fitted) -> float:
        return excess_of(found.size, self._room_for(found.drawing))

    def _num_crossings(self, drawing: Drawing) -> int:
        routed = self._routed(drawing)
        return count_crossings(routed) + count_hidden(routed)

    def _routed(self, drawing: Drawing) -> str:
        """Lay out a drawing with all of its arrows."""
        crossings = crossings_of(self.graph, drawing, self.options)
        return with_crossings(self._lay_out(drawing) or "", crossings, self.options.direction)

    def _room_for(self, drawing: Drawing) -> Extent:
        width = self.sheet.width - PADDING
        return Extent(width, self._room(drawing, width))

    def _lay_out(self, drawing: Drawing) -> str | None:
        try:
            dot = write_dot(self.graph, drawing, self.options, caption_width=0)
            placed = lay_out(dot, "dot", self.engine, time_limit_s=self.end - monotonic()).decode()
            size_in_points(placed)  # fails if this is no layout
        except LayoutError:
            return None
        return placed

    def _room(self, drawing: Drawing, width: float) -> float:
        """Return the height that is left above a caption of some width."""
        return self.sheet.height - PADDING - caption_height(self.graph, drawing, self.options, width)

    def _measured(self, drawing: Drawing, placed: str, room: Extent) -> Fitted:
        size = size_in_points(placed)
        fits = excess_of(size, room) <= self.tolerance
        return Fitted(drawing, self.options, size, max(room.width, size.width), fits=fits)

    def drawn(self, places: frozenset[Place]) -> Fitted:
        """Lay out what is drawn, whether it fits or not, with its caption."""
        self.slack = math.inf
        return self.with_caption(self.untangled(self.fitted(places)))

    def with_caption(self, found: Fitted) -> Fitted:
        """Make the caption as wide as the picture, if that is not too high."""
        is_low = found.fits and found.size.height <= self._room(found.drawing, found.size.width)
        return found._replace(caption_width=found.size.width) if is_low else found


def sheet_of(options: DrawOptions) -> Extent:
    """Return the size that a picture should have."""
    return COLUMN if options.theme == "paper" else SHEETS[options.fit_to]


def excess_of(size: Extent, room: Extent) -> float:
    """Return how much larger a picture is than its room, as a factor."""
    return max(size.width / room.width, size.height / room.height)


def _rects(drawing: Drawing, placed: str, direction: str) -> dict[int, Rect]:
    """Return where boxes and frames are, by their place in the parts; roots belong to the first box."""
    rects = {name: downward_rect(rect, direction) for name, rect in rects_of(placed).items()}
    names = part_names(drawing.parts)
    roots = [rect for name, rect in rects.items() if name.startswith("root")]
    found = {place: rects[name] for place, name in names.items() if name in rects}
    first = min(found, default=None)
    return found if first is None else {**found, first: around([found[first], *roots])}
