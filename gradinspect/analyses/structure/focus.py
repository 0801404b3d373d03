"""Select part of a graph: around a node, on the paths to it, of a class, or by size.

What comes in: a `Graph` and a `Focus`. What goes out: the graph cut down to that part, and the `Cut`.
"""

from collections.abc import Iterable, Iterator

from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.analyses.structure.cut import Cut, cut_graph, edges_of
from gradinspect.analyses.structure.name_patterns import matching_names
from gradinspect.analyses.structure.node_names import named_nodes
from gradinspect.errors import GradInspectError
from gradinspect.graph import Graph, Record, consumers
from gradinspect.units import format_bytes


class Focus(Record, frozen=True):
    """The criteria for a part of the graph; all that are set must hold."""

    around: str | None = None  # `#12`, a class, a module path, a parameter name; patterns too
    radius: int = 2
    path_to: str | None = None
    only_class: str | None = None
    min_bytes: int | None = None

    @property
    def is_set(self) -> bool:
        """Whether any criterion is set."""
        return any(option is not None for option in (self.around, self.path_to, self.only_class, self.min_bytes))


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
        raise GradInspectError(f"No node matches '{words}'.", _hint(graph, focus, len(parts)))
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
    if focus.only_class is not None:
        names = matching_names(focus.only_class, {node.name for node in graph.nodes}, "class")
        yield f"of class {focus.only_class}", _where(node.name in names for node in graph.nodes)
    if focus.min_bytes is not None:
        saved = held_bytes_by_node(graph)
        words = f"saving {format_bytes(focus.min_bytes)} or more"
        yield words, _where(num_bytes >= focus.min_bytes for num_bytes in saved)


def _hint(graph: Graph, focus: Focus, num_parts: int) -> str:
    if num_parts > 1:
        return "Combine fewer options."
    if focus.min_bytes is None:
        return "Name a node, module or parameter on a path of this graph."
    saved = held_bytes_by_node(graph)
    most = max(saved, default=0)
    return f"The largest is {format_bytes(most)}, at #{saved.index(most)}." if most else "This graph saves nothing."


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
