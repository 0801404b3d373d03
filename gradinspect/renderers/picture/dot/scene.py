"""What all parts of one picture share: the graph, the options, the colors."""

from collections.abc import Sequence
from typing import NamedTuple

from gradinspect.analyses.structure.cut import number_of
from gradinspect.graph import Graph
from gradinspect.renderers.picture.colors.coloring import COLORINGS
from gradinspect.renderers.picture.colors.looks import Coloring, Look
from gradinspect.renderers.picture.colors.palettes import PALETTES, Palette
from gradinspect.renderers.picture.colors.statuses import color_by_status
from gradinspect.renderers.picture.plan.parts import DrawOptions


class Scene(NamedTuple):
    """A graph about to be drawn. Without a coloring, fills show the kind of each box."""

    graph: Graph
    options: DrawOptions
    palette: Palette
    coloring: Coloring | None = None

    def look(self, ids: range) -> Look | None:
        """Return how a box of nodes is filled, if a coloring was requested."""
        return None if self.coloring is None else self.coloring.look(ids)

    def number(self, node_id: int) -> int:
        """Return the number under which the user knows a node."""
        return number_of(self.options.cut, node_id)


def set_scene(graph: Graph, options: DrawOptions, drawn: Sequence[range]) -> Scene:
    """Choose the colors.

    Args:
        graph: The graph.
        options: How to draw it.
        drawn: The ids of everything with its own fill.
    """
    palette = PALETTES[options.theme]
    if options.statuses:
        return Scene(graph, options, palette, color_by_status(options.statuses, palette))
    if options.color_by is None:
        return Scene(graph, options, palette)
    return Scene(graph, options, palette, COLORINGS[options.color_by](graph, drawn, palette))
