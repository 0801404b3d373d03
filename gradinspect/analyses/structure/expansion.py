"""Which scopes of an outline to expand: all down to a depth, as many as fit, or those around one node.

What comes in: a graph and its folding. What goes out: the `IsOpen` that `outline` takes.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from gradinspect.analyses.structure.folding import Scope, ids_of_copy, node_ids
from gradinspect.analyses.structure.outline import IsOpen, body_of, outline, unwrapped
from gradinspect.graph import Graph


class Around(NamedTuple):
    """An expanded scope around a node."""

    scope: Scope
    level: int  # number of expanded scopes around it
    copy: int  # which copy of a repeat the node is in; 0 if it is not a repeat


def can_open(scope: Scope) -> bool:
    """Return whether expanding a scope shows more than its row; a chain of views never does."""
    return scope.kind != "shapes"


def opens_to(depth: int) -> IsOpen:
    """Expand every scope nested less than `depth` levels deep."""
    return lambda scope, level: level < depth and can_open(scope)


def depth_that_fits(graph: Graph, scope: Scope, max_rows: int) -> int:
    """Return how deep a folded graph can be expanded within `max_rows` rows."""
    depth = 0
    while _goes_deeper(graph, scope, depth, max_rows):
        depth += 1
    return depth


def _goes_deeper(graph: Graph, scope: Scope, depth: int, max_rows: int) -> bool:
    """Return whether one more level expands something and still fits; it never has fewer rows."""
    rows = list(islice(outline(graph, scope, opens_to(depth)), max_rows + 1))
    if len(rows) > max_rows or not any(row.scope and can_open(row.scope) and not row.is_open for row in rows):
        return False
    deeper = islice(outline(graph, scope, opens_to(depth + 1)), max_rows + 1)
    return sum(1 for _ in deeper) <= max_rows


def scopes_around(folded: Scope, node_id: int) -> Iterator[Around]:
    """Yield the scopes to expand so that a node has a row, outermost first; none for an AccumulateGrad node."""
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
    """Find the copy that a node is in; all copies have the same number of nodes."""
    first = ids_of_copy(scope, 0)
    return (node_id - first.start) // len(first) if scope.copies else 0
