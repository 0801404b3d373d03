"""Select part of a graph: around a node, on the paths to it, or by a condition.

What comes in: a `Graph` and a `Focus`. What goes out: the graph cut down to that part, and the `Cut`.
"""

from collections.abc import Iterable, Iterator

from gradinspect.analyses.selection.node_conditions import nodes_where
from gradinspect.analyses.structure.cut import Cut, cut_graph, edges_of
from gradinspect.analyses.structure.node_names import named_nodes
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph, Record, consumers


class Focus(Record, frozen=True):
    """The criteria for a part of the graph; all that are set must hold."""

    around: str | None = None  # `#12`, a class, a module path, a parameter name; patterns too
    radius: int = 2
    path_to: str | None = None
    where: str | None = None  # `bytes>1MiB and class~Addmm*`

    @property
    def is_set(self) -> bool:
        """Whether any criterion is set."""
        return any(option is not None for option in (self.around, self.path_to, self.where))


def focus_graph(graph: Graph, focus: Focus) -> tuple[Graph, Cut | None]:
    """Cut a graph down to the focus; without criteria, return the whole graph and None.

    Leaves are kept with the nodes that use them; on a path to a leaf, only that leaf is kept.

    Raises:
        GradInspectError: A name is unknown, or no node is left.
    """
    parts = list(_parts(graph, focus))
    if not parts:
        return graph, None
    words = ", ".join(part for part, _ in parts)
    kept = frozenset.intersection(*(nodes for _, nodes in parts)) - _leaves(graph)
    if not kept:
        raise GradInspectError(f"No node matches '{words}'.", _hint(len(parts)))
    leaves = {edge.next_node for node in kept for _, edge in edges_of(graph, node)} & _leaves(graph)
    if focus.path_to is not None:
        leaves &= named_nodes(focus.path_to, graph)
    return cut_graph(graph, kept | leaves, words)


def _parts(graph: Graph, focus: Focus) -> Iterator[tuple[str, frozenset[int]]]:
    """Yield each criterion in words, and the nodes that meet it."""
    if focus.around is not None:
        yield f"within {focus.radius} of {focus.around}", _around(graph, named_nodes(focus.around, graph), focus.radius)
    if focus.path_to is not None:
        yield f"on a path to {focus.path_to}", _leading_to(graph, named_nodes(focus.path_to, graph))
    if focus.where is not None:
        yield f"where {focus.where}", nodes_where(graph, focus.where)


def _hint(num_parts: int) -> str:
    return "Combine fewer options." if num_parts > 1 else "Name something on a path of this graph, or ask for less."


def _where(holds: Iterable[bool]) -> frozenset[int]:
    return frozenset(number for number, does in enumerate(holds) if does)


def _leaves(graph: Graph) -> frozenset[int]:
    return _where(node.kind == "accumulate_grad" for node in graph.nodes)


def _around(graph: Graph, center: Iterable[int], radius: int) -> frozenset[int]:
    """Return the nodes within `radius` edges in either direction, not passing through leaves, which many nodes share.

    A leaf is drawn beside the nodes that use it, so from a leaf the radius counts from those nodes.
    """
    users = {number: [consumer.node for consumer in found] for number, found in consumers(graph).items()}
    leaves = _leaves(graph)
    reached = set(center)
    for leaf in reached & leaves:
        reached.update(users.get(leaf, ()))
    rim = reached - leaves
    for _ in range(radius):
        beside = {other for node in rim for other in users.get(node, ())}
        beside |= {edge.next_node for node in rim for _, edge in edges_of(graph, node)}
        rim = beside - reached - leaves
        if not rim:
            break
        reached |= rim
    return frozenset(reached)


def _leading_to(graph: Graph, ends: frozenset[int]) -> frozenset[int]:
    """Return the ends and every node on a path from a root to them: NOTE [Topological ids]."""
    leads = [node in ends for node in range(len(graph.nodes))]
    for node in reversed(range(len(graph.nodes))):
        leads[node] = leads[node] or any(leads[edge.next_node] for _, edge in edges_of(graph, node))
    return _where(leads)
