"""Which scopes of an outline to open: all down to a depth, as many as fit, or those around one node.

What comes in: a graph and its folding. What goes out: what `outline` asks for.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from gradinspect.analyses.structure.folding import Scope, ids_of_copy, node_ids
from gradinspect.analyses.structure.outline import IsOpen, body_of, outline, unwrapped
from gradinspect.graph import Graph


class Around(NamedTuple):
    """An open scope around a node."""

    scope: Scope
    level: int  # how many open scopes it is in
    copy: int  # which copy of a repeat the node is in; 0 when it is no repeat


def can_open(scope: Scope) -> bool:
    """Tell whether a scope has more to tell than its row; a chain of views is folded because its insides are not."""
    return scope.kind != "shapes"


def opens_to(depth: int) -> IsOpen:
    """Open what is in fewer open scopes than `depth`."""
    return lambda scope, level: level < depth and can_open(scope)


def depth_that_fits(graph: Graph, scope: Scope, max_rows: int) -> int:
    """Return how deep a folded graph can be opened in so many rows."""
    depth = 0
    while _goes_deeper(graph, scope, depth, max_rows):
        depth += 1
    return depth


def _goes_deeper(graph: Graph, scope: Scope, depth: int, max_rows: int) -> bool:
    """Tell whether one more level opens something and still fits; it has as many rows as this level, or more."""
    rows = list(islice(outline(graph, scope, opens_to(depth)), max_rows + 1))
    if len(rows) > max_rows or not any(row.scope and can_open(row.scope) and not row.is_open for row in rows):
        return False
    deeper = islice(outline(graph, scope, opens_to(depth + 1)), max_rows + 1)
    return sum(1 for _ in deeper) <= max_rows


def scopes_around(folded: Scope, node_id: int) -> Iterator[Around]:
    """Yield the scopes that must be open for a node to have a row, outermost first; none for an AccumulateGrad node."""
    items = folded.items
    level = 0
    while items:
        place = bisect_right(items, node_id, key=lambda item: node_ids(item).start) - 1
        item = items[max(place, 0)]
        if isinstance(item, int) or node_id not in node_ids(item) or isinstance(unwrapped(item)[0], int):
            return
        copy = _copy_around(item, node_id)
        yield Around(item, level, copy)
        items = body_of(item, copy)
        level += 1


def _copy_around(scope: Scope, node_id: int) -> int:
    """Copies are equal, so each has as many nodes as the first."""
    first = ids_of_copy(scope, 0)
    return (node_id - first.start) // len(first) if scope.copies else 0
