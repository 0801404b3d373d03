"""Fold wide fans: a node with thousands of inputs is drawn with some of them.

What comes in: the parts of a picture. What goes out: the same parts, with one box in place of many where a node leads
to more boxes than Graphviz can put side by side or anyone can read. Its time grows with the square of their number.
"""

from collections.abc import Sequence
from itertools import accumulate

from gradinspect.graph import Graph, Node
from gradinspect.renderers.picture.plan.parts import Box, Part, ScopeEnd, ScopeStart

MAX_FAN = 100  # targets of one box
FIRST_SHOWN, LAST_SHOWN = 20, 10  # of a larger fan


def fold_fans(graph: Graph, parts: Sequence[Part]) -> tuple[list[Part], int]:
    """Replace the middle of each wide fan by one box; return the parts and the number of nodes left out."""
    folded, missing = list(parts), 0
    while (middle := _middle_of_widest(graph, folded)) is not None:
        boxes = [part for part in folded[middle.start : middle.stop] if isinstance(part, Box)]
        ids = range(boxes[0].ids.start, boxes[-1].ids.stop)
        folded[middle.start : middle.stop] = [Box("cut", ids)]
        missing += sum(len(box.ids) for box in boxes if box.kind != "cut")
    return folded, missing


def has_wide_fan(graph: Graph) -> bool:
    """Return whether a node leads to more nodes than are drawn side by side."""
    wide = (node for node in graph.nodes if len(node.next_edges) > MAX_FAN)
    return any(len(_targets(graph, node)) > MAX_FAN for node in wide)


def _targets(graph: Graph, node: Node) -> set[int]:
    ids = {edge.next_node for edge in node.next_edges if edge is not None}
    return {node_id for node_id in ids if graph.nodes[node_id].kind != "accumulate_grad"}


def _middle_of_widest(graph: Graph, parts: Sequence[Part]) -> range | None:
    """Find the parts to leave out of the widest fan; None if no fan is too wide."""
    heads = sorted(_heads(graph, parts), key=len, reverse=True)
    middles = (_balanced(parts, places[FIRST_SHOWN - 1] + 1, places[-LAST_SHOWN]) for places in heads)
    return next((middle for middle in middles if _num_boxes(parts, middle) > 1), None)


def _num_boxes(parts: Sequence[Part], middle: range) -> int:
    return sum(isinstance(part, Box) for part in parts[middle.start : middle.stop])


def _heads(graph: Graph, parts: Sequence[Part]) -> list[list[int]]:
    """Return, for each box with too many targets, the indices of those targets in the parts."""
    place_of = [-1] * len(graph.nodes)
    boxes = [(place, part) for place, part in enumerate(parts) if isinstance(part, Box)]
    for place, box in boxes:
        place_of[box.ids.start : box.ids.stop] = [place] * len(box.ids)
    fans = []
    for place, box in boxes:
        edges = (edge for node_id in box.ids for edge in graph.nodes[node_id].next_edges if edge is not None)
        heads = {place_of[edge.next_node] for edge in edges} - {place, -1}
        if len(heads) > MAX_FAN:
            fans.append(sorted(heads))
    return fans


def _balanced(parts: Sequence[Part], start: int, stop: int) -> range:
    """Narrow a run of parts until its scope starts and ends are balanced."""
    steps = [isinstance(part, ScopeStart) - isinstance(part, ScopeEnd) for part in parts[start:stop]]
    levels = list(accumulate(steps, initial=0))  # before each part and after the last
    lowest = min(levels)
    first = levels.index(lowest)
    last = len(levels) - 1 - levels[::-1].index(lowest)
    return range(start + first, start + last)
