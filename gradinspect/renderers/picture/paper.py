"""Pictures for a paper: white, without a legend, exactly as wide as a column of text, with text that can be read there.

What comes in: a graph, options, a layout. What goes out: options that open less, and the viewport in Graphviz's terms.
"""

from typing import NamedTuple

import msgspec

from gradinspect.analyses.structure.expansion import readable_depth
from gradinspect.analyses.structure.folding import fold_graph
from gradinspect.graph import Graph
from gradinspect.renderers.picture.dot.document import write_dot
from gradinspect.renderers.picture.graphviz import Engine, LayoutError, lay_out
from gradinspect.renderers.picture.placed import size_in_points
from gradinspect.renderers.picture.plan.drawing import plan_drawing
from gradinspect.renderers.picture.plan.parts import DrawOptions

POINTS_PER_MM = 72 / 25.4
WIDTH, HEIGHT = 120 * POINTS_PER_MM, 190 * POINTS_PER_MM  # the text of a page of most journals, less a caption
MARGIN = 4.0  # points around the picture
FONT_SIZE = 10.0  # points, of most text at full size
READABLE = 6.0  # points
MAX_TRIES = 6


class Sheet(NamedTuple):
    """A picture on paper."""

    width: float  # points
    height: float
    scale: float
    viewport: str  # an attribute of the graph

    @property
    def note(self) -> str:
        """Warn of text that is too small; "" if it is not."""
        size = FONT_SIZE * self.scale
        words = f"text is {size:.1f} points high; a smaller --depth, or --around, makes it larger"
        return words if size < READABLE else ""


def fit_sheet(placed: str) -> Sheet:
    """Fit a layout, which Graphviz wrote with positions, into the width and height of the paper."""
    width, height = (side + 2 * MARGIN for side in size_in_points(placed))
    scale = min(1.0, WIDTH / width, HEIGHT / height)
    shown = height * scale
    center = f"{width / 2 - MARGIN:.2f},{height / 2 - MARGIN:.2f}"
    return Sheet(WIDTH, shown, scale, f"{WIDTH:.2f},{shown:.2f},{scale:.5f},{center}")


def readable_on_paper(graph: Graph, options: DrawOptions, engine: Engine, time_limit_s: float) -> DrawOptions:
    """Open as much as can be read on paper, unless the user chose how deep to look."""
    if options.depth is not None or options.full:
        return options
    deepest = readable_depth(fold_graph(graph, shapes=options.fold_shapes))
    for depth in range(deepest, max(deepest - MAX_TRIES, 0), -1):
        tried = msgspec.structs.replace(options, depth=depth)
        try:
            dot = write_dot(graph, plan_drawing(graph, tried), tried)
            placed = lay_out(dot, "dot", engine, time_limit_s=time_limit_s / MAX_TRIES).decode()
        except LayoutError:
            continue
        if not fit_sheet(placed).note:
            return tried
    return msgspec.structs.replace(options, depth=0)
