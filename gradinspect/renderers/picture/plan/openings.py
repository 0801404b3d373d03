"""In which order to open modules: those that hold the most first, or have the largest gradients, or changed the most.

What comes in: a graph and its folding. What goes out: steps, each of which opens one scope, or several that are alike,
so that equal modules look equal.
"""

import math
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from gradinspect.analyses.gradients.observed import arriving_norm
from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.structure.expansion import can_open, fits_unfolded
from gradinspect.analyses.structure.folding import Item, Scope, node_ids
from gradinspect.analyses.structure.outline import IsOpen, body_of, unwrapped
from gradinspect.graph import Graph
from gradinspect.renderers.picture.plan.parts import DrawOptions, Part, ScopeEnd, ScopeStart

Place: TypeAlias = tuple[
    int, int, int
]  # of a scope: its first and last node, and how many expanded scopes are around it

NOT_FINITE = 1e100  # NaN and Inf matter most


class Opening(NamedTuple):
    """Scopes to open together."""

    places: frozenset[Place]
    parents: frozenset[Place]  # the scopes around them, directly
    num_boxes: int  # that are added


def place_of(scope: Scope, level: int) -> Place:
    """Return what tells a scope apart from all others of one folding."""
    ids = node_ids(scope)
    return ids.start, ids.stop, level


def opens(places: frozenset[Place]) -> IsOpen:
    """Expand the scopes at these places."""
    return lambda scope, level: place_of(scope, level) in places


def steps(graph: Graph, folded: Scope, options: DrawOptions) -> Iterator[Opening]:
    """Yield what to open, the most important first; a scope after the one around it."""
    amounts = _amounts(graph, options)
    waiting: list[_Closed] = []
    _put(waiting, folded.items, amounts, None, 0, 1)
    while waiting:
        alike = [heappop(waiting)]
        while waiting and waiting[0].rank == alike[0].rank:
            alike.append(heappop(waiting))
        added, places = 0, set[Place]()
        for one in alike:
            opened = list(_with_only_child(one))
            places.update(closed.place for closed in opened)
            last = opened[-1]
            added += _put(waiting, body_of(last.scope), amounts, last.place, last.level + 1, last.inner_times) - 1
            added += sum(bool(closed.scope.copies) for closed in opened)
        parents = frozenset(one.parent for one in alike if one.parent is not None)
        yield Opening(frozenset(places), parents, added)


def hidden_share(graph: Graph, options: DrawOptions, parts: Sequence[Part]) -> float:
    """Return how much of what matters is in one closed box, in all copies of the repeat that it is in."""
    amounts = _amounts(graph, options)
    times, largest = [1], 0.0
    for part in parts:
        if isinstance(part, ScopeStart):
            times.append(times[-1] * (len(part.scope.copies) + 1))
        elif isinstance(part, ScopeEnd):
            times.pop()
        elif part.kind == "closed":
            largest = max(largest, math.fsum(amounts[part.ids.start : part.ids.stop]) * times[-1])
    total = math.fsum(amounts)
    return largest / total if total else 0.0


class _Closed(NamedTuple):
    """A scope that can be opened, in the order of a heap."""

    rank: tuple[float, int, int, str]  # equal for scopes that are alike
    place: Place
    scope: Scope
    level: int
    times: int  # how often it occurs: in each copy of the repeats around it
    parent: Place | None

    @property
    def inner_times(self) -> int:
        """How often what is inside occurs."""
        return self.times * (len(self.scope.copies) + 1)


def _with_only_child(closed: _Closed) -> Iterator[_Closed]:
    """Yield a scope, and the one in it if there is nothing else: an open frame around one closed box shows nothing."""
    yield closed
    while len(items := body_of(closed.scope)) == 1 and _is_openable(items[0]):
        scope, level = items[0], closed.level + 1
        assert isinstance(scope, Scope)  # noqa: S101 - it can be opened
        closed = _Closed(closed.rank, place_of(scope, level), scope, level, closed.inner_times, closed.place)
        yield closed


def _is_openable(item: Item) -> bool:
    is_scope = isinstance(item, Scope) and can_open(item) and not fits_unfolded(item)
    return is_scope and not isinstance(unwrapped(item)[0], int)


def _put(
    waiting: list[_Closed],
    items: Sequence[Item],
    amounts: Sequence[float],
    parent: Place | None,
    level: int,
    times: int,
) -> int:
    """Add the scopes among some items; return the number of boxes that the items are."""
    todo, num_boxes = list(items), 0
    while todo:
        item = todo.pop()
        if isinstance(item, Scope) and fits_unfolded(item):
            todo += [inner for body in (item.items, *item.copies) for inner in body]
            continue
        num_boxes += 1
        if isinstance(item, Scope) and _is_openable(item):
            place = place_of(item, level)
            amount = math.fsum(amounts[place[0] : place[1]]) * times
            rank = (-amount, -item.num_nodes * times, level, item.kind)
            heappush(waiting, _Closed(rank, place, item, level, times, parent))
    return num_boxes


def _amounts(graph: Graph, options: DrawOptions) -> Sequence[float]:
    """Return for each node how much it matters in this picture."""
    if options.statuses:
        return [_num_changed(graph, options.statuses, node_id) for node_id in range(len(graph.nodes))]
    if options.color_by == "grad" and graph.gradients is not None:
        norms = {ran.node: arriving_norm(ran) or 0.0 for ran in graph.gradients.nodes}
        found = (norms.get(node_id, 0.0) for node_id in range(len(graph.nodes)))
        return [norm if math.isfinite(norm) else NOT_FINITE for norm in found]
    if options.color_by == "flops":
        return [(node.flops or 0) + (node.backward_flops or 0) for node in graph.nodes]
    return held_bytes_by_node(graph)


def _num_changed(graph: Graph, statuses: Sequence[str], node_id: int) -> int:
    """Count a node and its leaves, as far as they changed."""
    heads = (edge.next_node for edge in graph.nodes[node_id].next_edges if edge is not None)
    leaves = (head for head in heads if graph.nodes[head].kind == "accumulate_grad")
    return sum(bool(statuses[one]) for one in (node_id, *leaves))
