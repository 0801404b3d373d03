"""Open as much as fits on a screen, a page or a slide.

What comes in: a graph, options, a Graphviz program. What goes out: a `Drawing`.

NOTE [A picture that fits]
The budget of a picture is its size at 100%, with most text 10 points high: no number of boxes or depth tells how large
a picture is. Modules are opened in the order of `plan.openings` as long as a real layout is within the sheet. A model
that would be next to nothing, one closed box, is opened even if it is too large.
"""

import math
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Final, NamedTuple

from msgspec.structs import replace

from gradinspect.analyses.structure.expansion import MAX_BOXES_AT_ONCE, TOO_FEW_BOXES
from gradinspect.analyses.structure.folding import fold_graph
from gradinspect.graph import Graph
from gradinspect.renderers.picture.dot.document import caption_height, part_names, write_dot
from gradinspect.renderers.picture.graphviz import Engine, LayoutError, lay_out
from gradinspect.renderers.picture.paper import COLUMN
from gradinspect.renderers.picture.placed import Extent, Rect, around, rects_of, size_in_points
from gradinspect.renderers.picture.plan.columns import Split, split_into_columns
from gradinspect.renderers.picture.plan.drawing import Drawing, in_columns, plan_drawing, plan_opened
from gradinspect.renderers.picture.plan.openings import Opening, Place, opens, steps
from gradinspect.renderers.picture.plan.parts import DrawOptions, FitTo, PartChooser

SHEETS: Final[Mapping[FitTo, Extent]] = {
    "screen": Extent(900, 675),  # 1,200 x 900 pixels at 96 dpi
    "a4": Extent(482, 728),  # 210 x 297 mm, less 20 mm on each side
    "slide": Extent(960, 540),  # 16:9
}
PADDING = 22.0  # points that Graphviz leaves around a picture, both sides together
LEAST_AREA = 4000.0  # square points of a box and what is around it
MAX_SPLITS = 3  # layouts in columns of one drawing
SLACK = 1.2  # times the width: columns that are expected to be wider are not tried
MAX_EXTRAS = 6  # smaller modules that are tried after the first that does not fit
MAX_NODES_TRIED = 50_000  # with these: a larger graph gets fewer


class Fitted(NamedTuple):
    """A drawing, and how large it is without its caption."""

    drawing: Drawing
    options: DrawOptions  # which may say less than what was asked for
    size: Extent
    caption_width: float
    fits: bool


class _Fitter:
    """Lays out what might be opened."""

    def __init__(self, graph: Graph, options: DrawOptions, engine: Engine, time_limit_s: float) -> None:
        self.graph = graph
        self.options = options
        self.engine = engine
        self.sheet = _sheet(options)
        self.end = monotonic() + time_limit_s
        self.folded = fold_graph(graph, shapes=options.fold_shapes)
        self.chooser = PartChooser(graph, options)
        self.slack = SLACK
        self.max_boxes = int(self.sheet.width * self.sheet.height / LEAST_AREA)

    def drawing(self, places: frozenset[Place]) -> Drawing:
        return plan_opened(self.chooser, self.folded, opens(places))

    def fitted(self, places: frozenset[Place]) -> Fitted:
        """Lay out a picture with these scopes open."""
        return self.set_in_columns(self.drawing(places))

    def set_in_columns(self, drawing: Drawing) -> Fitted:
        """Lay out a drawing, in columns if it is too high otherwise."""
        unknown = Fitted(drawing, self.options, Extent(math.inf, math.inf), self.sheet.width, fits=False)
        if len(drawing.boxes) > self.max_boxes:
            return unknown
        placed = self.lay_out(drawing)
        if placed is None:
            return unknown
        room = Extent(self.sheet.width - PADDING, self.room(drawing, self.sheet.width - PADDING))
        one = self.measured(drawing, placed, room)
        is_hopeless = one.size.width * one.size.height > room.width * room.height * self.slack**2
        if one.fits or is_hopeless or self.options.direction != "TB":
            return one
        rects, best, height = _rects(drawing, placed), one, room.height
        if len(rects) < len(part_names(drawing.parts)):
            return one
        for _ in range(MAX_SPLITS):
            split = split_into_columns(drawing.parts, rects, Extent(room.width, height))
            found = self.apart(drawing, split, room)
            if found is None or found.fits:
                return found or best
            best = min(best, found, key=lambda one: _excess(one.size, room))
            height -= max(found.size.height - room.height, 0) + 1  # boxes of one rank are as far apart in all columns
        return best

    def apart(self, drawing: Drawing, split: Split, room: Extent) -> Fitted | None:
        """Lay out in columns, if they are not expected to be too wide."""
        if not split.columns or split.size.width > room.width * self.slack:
            return None
        columns = in_columns(drawing, split.columns)
        placed = self.lay_out(columns)
        return None if placed is None else self.measured(columns, placed, room)

    def lay_out(self, drawing: Drawing) -> str | None:
        try:
            dot = write_dot(self.graph, drawing, self.options, caption_width=0)
            placed = lay_out(dot, "dot", self.engine, time_limit_s=self.end - monotonic()).decode()
            size_in_points(placed)  # fails if this is no layout
        except LayoutError:
            return None
        return placed

    def room(self, drawing: Drawing, width: float) -> float:
        """Return the height that is left above a caption of some width."""
        return self.sheet.height - PADDING - caption_height(self.graph, drawing, self.options, width)

    def measured(self, drawing: Drawing, placed: str, room: Extent) -> Fitted:
        size = size_in_points(placed)
        fits = size.width <= room.width and size.height <= room.height
        return Fitted(drawing, self.options, size, room.width, fits=fits)

    def drawn(self, places: frozenset[Place]) -> Fitted:
        """Lay out what is drawn, whether it fits or not; its caption is as wide as it, if that is not too high."""
        self.slack = math.inf
        return self.with_caption(self.fitted(places))

    def with_caption(self, found: Fitted) -> Fitted:
        is_low = found.fits and found.size.height <= self.room(found.drawing, found.size.width)
        return found._replace(caption_width=found.size.width) if is_low else found


def _sheet(options: DrawOptions) -> Extent:
    return COLUMN if options.theme == "paper" else SHEETS[options.fit_to]


def _excess(size: Extent, room: Extent) -> float:
    return max(size.width / room.width, size.height / room.height)


def _rects(drawing: Drawing, placed: str) -> dict[int, Rect]:
    """Return where boxes and frames are, by their place in the parts; roots belong to the first box."""
    rects = rects_of(placed)
    names = part_names(drawing.parts)
    roots = [rect for name, rect in rects.items() if name.startswith("root")]
    found = {place: rects[name] for place, name in names.items() if name in rects}
    first = min(found, default=None)
    return found if first is None else {**found, first: around([found[first], *roots])}


def fit_drawing(graph: Graph, options: DrawOptions, engine: Engine, time_limit_s: float) -> Fitted:
    """Open as much as fits, unless the user chose how deep to look; count leaves if their names leave no room."""
    named = _fit(_Fitter(graph, options, engine, time_limit_s))
    if named.fits:
        return named
    counted = _fit(_Fitter(graph, replace(options, counts_leaves=True), engine, time_limit_s))
    sheet = _sheet(options)
    return min(counted, named, key=lambda one: _excess(one.size, sheet))


def _fit(fitter: _Fitter) -> Fitted:
    if fitter.options.depth is not None:
        fitter.slack = math.inf
        return fitter.with_caption(fitter.set_in_columns(plan_drawing(fitter.graph, fitter.options)))
    order = _some_steps(fitter)
    num_open = _most_that_fit(fitter, order)
    places = _opened(order[:num_open])
    num_extras = min(MAX_EXTRAS, MAX_NODES_TRIED // max(len(fitter.graph.nodes), 1))
    for step in order[num_open + 1 :][:num_extras]:
        if step.parents <= places and fitter.fitted(places | step.places).fits:
            places |= step.places
    return fitter.drawn(_not_too_few(fitter, order, places))


def _some_steps(fitter: _Fitter) -> list[Opening]:
    """List steps until there are more boxes than can fit."""
    order: list[Opening] = []
    num_boxes = len(fitter.drawing(frozenset()).boxes)
    for step in steps(fitter.graph, fitter.folded, fitter.options):
        order.append(step)
        num_boxes += step.num_boxes
        if num_boxes > fitter.max_boxes + MAX_BOXES_AT_ONCE:
            break
    return order


def _opened(order: Sequence[Opening]) -> frozenset[Place]:
    return frozenset(place for step in order for place in step.places)


def _most_that_fit(fitter: _Fitter, order: Sequence[Opening]) -> int:
    """Find how many of the first steps fit together."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high + 1) // 2
        if fitter.fitted(_opened(order[:middle])).fits:
            low = middle
        else:
            high = middle - 1
    return low


def _not_too_few(fitter: _Fitter, order: Sequence[Opening], places: frozenset[Place]) -> frozenset[Place]:
    """Open more while next to nothing is shown, up to a limit of boxes."""
    for step in order:
        if len(fitter.drawing(places).boxes) >= TOO_FEW_BOXES:
            break
        more = places | step.places
        if step.parents <= places and len(fitter.drawing(more).boxes) <= MAX_BOXES_AT_ONCE:
            places = more
    return places
