"""Which scopes of an outline to expand: all down to a depth, as many as fit, or those around one node.

What comes in: a graph and its folding. What goes out: the `IsOpen` that `outline` takes.

NOTE [About forty boxes]
A picture, a page and a tree start with as much as one can take in at a glance: the deepest level at which at most forty
boxes stand. If that shows next to nothing (a model that is one long chain is one closed box), one level more may show
up to eighty. Pictures, page, tree and explorer share this rule. Text takes more rows than there are boxes, one for each
leaf and each skip: a tree closes levels again until it has at most fifty rows, as long as five boxes are left.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gradinspect.analyses.structure.folding import Item, Scope, ids_of_copy, node_ids
from gradinspect.analyses.structure.outline import IsOpen, body_of, unwrapped

MAX_BOXES = 40
TOO_FEW_BOXES = 5
MAX_BOXES_AT_ONCE = 80
MAX_ROWS_AT_A_GLANCE = 50
MAX_NODES_UNFOLDED = 12  # a repeat of this few nodes is easier to read unfolded


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


def readable_depth(folded: Scope) -> int:
    """Return how deep to expand a folded graph, unless the user says: NOTE [About forty boxes].

    A level is expanded as a whole, so that equal modules look equal.
    """
    depth = 0
    shown = _Shown(folded, depth)
    while shown.num_closed:
        deeper = _Shown(folded, depth + 1)
        if deeper.num_boxes > MAX_BOXES and (shown.num_boxes >= TOO_FEW_BOXES or deeper.num_boxes > MAX_BOXES_AT_ONCE):
            break
        depth, shown = depth + 1, deeper
    return depth


def readable_depth_of_rows(folded: Scope, has_more_rows: Callable[[int, int], bool]) -> int:
    """Return how deep to expand a folded graph that is printed as rows: NOTE [About forty boxes].

    Args:
        folded: The folded graph.
        has_more_rows: Whether it has more rows than a limit, expanded to a depth: called with (limit, depth).
    """
    depth = readable_depth(folded)
    while depth and has_more_rows(MAX_ROWS_AT_A_GLANCE, depth) and _Shown(folded, depth - 1).num_boxes >= TOO_FEW_BOXES:
        depth -= 1
    return depth


def fits_unfolded(scope: Scope) -> bool:
    """Return whether a repeat is so small that it is easier to read with all of its copies."""
    return bool(scope.copies) and scope.num_nodes <= MAX_NODES_UNFOLDED


class _Shown:
    """Counts the boxes of a picture that is expanded to some depth, until there are far too many."""

    def __init__(self, folded: Scope, depth: int) -> None:
        self.num_boxes = self.num_closed = 0
        waiting: list[tuple[Item, int]] = [(item, 0) for item in folded.items]
        while waiting and self.num_boxes <= MAX_BOXES_AT_ONCE:
            item, level = waiting.pop()
            if isinstance(item, Scope) and fits_unfolded(item):
                waiting += [(inner, level) for items in (item.items, *item.copies) for inner in items]
            elif isinstance(item, int) or not can_open(item) or isinstance(unwrapped(item)[0], int):
                self.num_boxes += 1
            elif level >= depth:
                self.num_boxes += 1
                self.num_closed += 1
            else:
                self.num_boxes += bool(item.copies)  # one box for the later copies
                waiting += [(inner, level + 1) for inner in body_of(item)]


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
