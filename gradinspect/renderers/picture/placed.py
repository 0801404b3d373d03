"""Bitmaps and PDF: Graphviz draws frames of module calls first, so that an arrow into one strikes through its title.

What comes in: a graph with the position of everything, as Graphviz writes it. What goes out: the same graph with each
title once more as a node, which is drawn after the arrows, on an opaque strip that covers the first. No second layout
is needed.
"""

import re
from collections.abc import Mapping

from gradinspect.renderers.picture.graphviz import LayoutError

SIZE = re.compile(r'\bbb="[^",]*,[^",]*,([\d.e+]+),([\d.e+]+)"')
CLUSTER = re.compile(r"^\s*subgraph (cluster_\d+) \{", re.MULTILINE)
TITLE_AT = re.compile(r'\blp="([-\d.e+]+,[-\d.e+]+)"')  # a quote in a text of the program is escaped


def size_in_points(placed: str) -> tuple[float, float]:
    """Return the width and the height of the picture.

    Raises:
        LayoutError: Graphviz did not say.
    """
    match = SIZE.search(placed)
    if match is None:
        raise LayoutError("the size of the picture is unknown")
    return max(float(match[1]), 1.0), max(float(match[2]), 1.0)


def with_titles_above(placed: str, titles: Mapping[str, str]) -> str:
    """Cover the titles of frames with nodes.

    Args:
        placed: The graph.
        titles: The attributes of the node for each frame, by the name of its cluster.
    """
    starts = list(CLUSTER.finditer(placed))
    places = {start[1]: TITLE_AT.search(placed, start.end()) for start in starts}
    lines = ["graph [outputorder=edgesfirst]"]
    for name, place in places.items():
        if place is not None and name in titles:
            lines.append(f'title_{name} {titles[name][:-1]} pos="{place[1]}"]')
    body = placed.rstrip().removesuffix("}")
    return "\n".join((body, *lines, "}\n"))
