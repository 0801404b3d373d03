"""Find residual connections: the edges by which a gradient leaves a block without passing its body.

What comes in: the contiguous ids of a block, which is shown as one box. What goes out: the edges out of it that are
skips.

NOTE [Skips]
Where the forward pass adds or concatenates (`x + f(x)`), the gradient forks. If two branches leave the block for the
same node, through different nodes of the block, the shortest path is the skip, and the rest goes through the body. A
path with a projection (the `downsample` of a ResNet) is still shorter than the body. Equal paths are branches, not
skips; so are paths that fork at a product: gates, and the query, key and value of attention.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from gradinspect.graph import Graph, Node

MAX_PATHS = 4  # out of a block to one node: a skip, and query, key and value; the steps of an RNN are more
MERGES = frozenset({"AddBackward0", "SubBackward0", "CatBackward0", "StackBackward0"})


class SkipEdge(NamedTuple):
    """An edge: the node in the block, and the position in its `next_edges`."""

    tail: int
    position: int


class _Path(NamedTuple):
    """The shortest path from the output of a block to a node in it."""

    length: int
    has_forked: bool


def fork_ids(graph: Graph) -> list[int]:
    """List the nodes at which a gradient forks, for many calls of `skip_edges`."""
    return [node_id for node_id, node in enumerate(graph.nodes) if _forks(graph, node)]


def skip_edges(graph: Graph, ids: range, forks: Sequence[int] | None = None) -> frozenset[SkipEdge]:
    """Return the edges out of a block that go around its body: NOTE [Skips]. NOTE [Topological ids] in `graph`.

    Args:
        graph: The graph.
        ids: The block.
        forks: What `fork_ids` returns, if it is known.
    """
    if not _has_fork(graph, ids, forks):
        return frozenset()
    paths: dict[int, _Path] = {ids.start: _Path(0, has_forked=False)}
    exits: dict[int, list[tuple[int, bool, SkipEdge]]] = {}
    for tail in ids:
        if tail not in paths:
            continue
        path = paths[tail]
        has_forked = path.has_forked or _forks(graph, graph.nodes[tail])
        for position, edge in enumerate(graph.nodes[tail].next_edges):
            if edge is None or graph.nodes[edge.next_node].kind == "accumulate_grad":
                continue
            if edge.next_node not in ids:
                exits.setdefault(edge.next_node, []).append((path.length, has_forked, SkipEdge(tail, position)))
            elif edge.next_node not in paths or path.length + 1 < paths[edge.next_node].length:
                paths[edge.next_node] = _Path(path.length + 1, has_forked)
    return frozenset(skip for out in exits.values() if (skip := _shortest(out)) is not None)


def _shortest(exits: list[tuple[int, bool, SkipEdge]]) -> SkipEdge | None:
    """Return the exit that is nearer than all others, if it forked from them at a sum."""
    (length, has_forked, edge), *others = sorted(exits)
    return edge if has_forked and 0 < len(others) < MAX_PATHS and length < others[0][0] else None


def _has_fork(graph: Graph, ids: range, forks: Sequence[int] | None) -> bool:
    if forks is None:
        return any(_forks(graph, graph.nodes[tail]) for tail in ids)
    return bisect_left(forks, ids.start) < bisect_left(forks, ids.stop)


def _forks(graph: Graph, node: Node) -> bool:
    """Return whether a node passes its gradient on to several nodes, as a sum does."""
    if node.name not in MERGES:
        return False
    first: int | None = None
    for edge in node.next_edges:
        if edge is not None and edge.next_node != first and graph.nodes[edge.next_node].kind != "accumulate_grad":
            if first is not None:
                return True
            first = edge.next_node
    return False
