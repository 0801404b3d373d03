"""Open as much as fits on a screen, a page or a slide.

What comes in: a graph, options, a Graphviz program. What goes out: a `Drawing`.

NOTE [A picture that fits]
The budget of a picture is its size at 100%, with most text 10 points high: no number of boxes or depth tells how large
a picture is. Modules are opened in the order of `plan.openings` as long as a real layout is within the sheet. A model
that would be next to nothing, one closed box, is opened even if it is too large. Leaves give way, to their number at
each box, where nearly all would be in one closed box otherwise.
"""

import math
from collections.abc import Sequence

from msgspec.structs import replace

from gradinspect.analyses.structure.expansion import MAX_BOXES_AT_ONCE, TOO_FEW_BOXES
from gradinspect.graph import Graph
from gradinspect.renderers.picture.graphviz import Engine
from gradinspect.renderers.picture.layouts import Fitted, Layouter, excess_of, sheet_of
from gradinspect.renderers.picture.plan.drawing import plan_drawing
from gradinspect.renderers.picture.plan.openings import Opening, Place, hidden_share, steps
from gradinspect.renderers.picture.plan.parts import DrawOptions

NEARLY_ALL = 0.9  # of what the picture is about
MAX_EXTRAS = 6  # smaller modules that are tried after the first that does not fit
MAX_NODES_TRIED = 50_000  # with these: a larger graph gets fewer


def fit_drawing(graph: Graph, options: DrawOptions, engine: Engine, time_limit_s: float) -> Fitted:
    """Open as much as fits, unless the user chose how deep to look; count leaves if their names leave no room."""
    named = _fit(Layouter(graph, options, engine, time_limit_s))
    hidden = hidden_share(graph, options, named.drawing.parts)
    if named.fits and (hidden < NEARLY_ALL or options.depth is not None):
        return named
    counted = _fit(Layouter(graph, replace(options, counts_leaves=True), engine, time_limit_s))
    if named.fits:
        shows_more = counted.fits and hidden_share(graph, options, counted.drawing.parts) < NEARLY_ALL
        return counted if shows_more else named
    sheet = sheet_of(options)
    return min(counted, named, key=lambda one: excess_of(one.size, sheet))


def _fit(fitter: Layouter) -> Fitted:
    if fitter.options.depth is not None:
        fitter.slack = math.inf
        return fitter.with_caption(fitter.untangled(fitter.set_in_columns(plan_drawing(fitter.graph, fitter.options))))
    order = _some_steps(fitter)
    num_open = _most_that_fit(fitter, order)
    places = _opened(order[:num_open])
    num_extras = min(MAX_EXTRAS, MAX_NODES_TRIED // max(len(fitter.graph.nodes), 1))
    for step in order[num_open + 1 :]:
        if num_extras and step.parents <= places:
            num_extras -= 1
            places |= step.places if fitter.fitted(places | step.places).fits else frozenset()
    return fitter.drawn(_not_too_few(fitter, order, places))


def _some_steps(fitter: Layouter) -> list[Opening]:
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


def _most_that_fit(fitter: Layouter, order: Sequence[Opening]) -> int:
    """Find how many of the first steps fit together."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high + 1) // 2
        if fitter.fitted(_opened(order[:middle])).fits:
            low = middle
        else:
            high = middle - 1
    return low


def _not_too_few(fitter: Layouter, order: Sequence[Opening], places: frozenset[Place]) -> frozenset[Place]:
    """Open more while next to nothing is shown, up to a limit of boxes."""
    for step in order:
        if len(fitter.drawing(places).boxes) >= TOO_FEW_BOXES:
            break
        more = places | step.places
        if step.parents <= places and len(fitter.drawing(more).boxes) <= MAX_BOXES_AT_ONCE:
            places = more
    return places
