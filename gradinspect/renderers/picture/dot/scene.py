"""What everything in one picture shares: the graph, how to draw it, its colours."""

from collections.abc import Sequence
from typing import NamedTuple

from gradinspect.analyses.structure.cut import number_of
from gradinspect.graph import Graph
from gradinspect.renderers.picture.colors.coloring import COLOURINGS
from gradinspect.renderers.picture.colors.looks import Colouring, Look
from gradinspect.renderers.picture.colors.palettes import DARK, LIGHT, Palette
from gradinspect.renderers.picture.plan.parts import DrawOptions


class Scene(NamedTuple):
    """A graph about to be drawn; without a colouring, a fill tells what kind of thing a box is."""

    graph: Graph
    options: DrawOptions
    palette: Palette
    colouring: Colouring | None = None

    def look(self, ids: range) -> Look | None:
        """Return how a box of some nodes is filled, when that is asked for."""
        return None if self.colouring is None else self.colouring.look(ids)

    def number(self, node_id: int) -> int:
        """Return the number that a node has for the user."""
        return number_of(self.options.cut, node_id)


def set_scene(graph: Graph, options: DrawOptions, drawn: Sequence[range]) -> Scene:
    """Choose the colours.

    Args:
        graph: The graph.
        options: How to draw it.
        drawn: The ids of all that gets a fill of its own.
    """
    palette = DARK if options.dark else LIGHT
    if options.colour_by is None:
        return Scene(graph, options, palette)
    return Scene(graph, options, palette, COLOURINGS[options.colour_by](graph, drawn, palette))
