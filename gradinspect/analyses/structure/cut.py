"""Cut a graph down to some of its nodes, and record what was cut.

What comes in: a `Graph` and the ids to keep. What goes out: a smaller `Graph` with its own ids, and a `Cut`: the
numbers of its nodes in the whole graph, and the edges to and from nodes that were left out.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from gradinspect.analyses.structure.outline import leaf_uses
from gradinspect.graph import Edge, Gradients, Graph, Node, Record, SavedValue
from gradinspect.units import format_count


class Size(NamedTuple):
    """The size of a graph."""

    num_nodes: int  # without AccumulateGrad
    num_leaves: int


class Cut(Record, frozen=True):
    """What was cut from a graph."""

    words: str  # what was kept: "within 2 of h.3.attn"
    numbers: tuple[int, ...]  # of each node in the whole graph
    whole: Size
    left: Size
    lost_places: dict[int, tuple[int, ...]]  # node -> positions of edges to nodes that were left out
    lost_users: dict[int, int]  # node -> number of edges from nodes that were left out

    def num_lost(self, ids: Iterable[int]) -> tuple[int, int]:
        """Count the edges from left-out nodes into some nodes, and from them to left-out nodes."""
        came, lead = 0, 0
        for node in ids:
            came += self.lost_users.get(node, 0)
            lead += len(self.lost_places.get(node, ()))
        return came, lead


def describe_cut(cut: Cut) -> str:
    """Say how much was kept, and what."""
    leaves = f", with {cut.left.num_leaves:,} of {format_count(cut.whole.num_leaves, 'leaf', 'leaves')}"
    nodes = f"{cut.left.num_nodes:,} of {format_count(cut.whole.num_nodes, 'node')}"
    return f"{nodes}{leaves if cut.left.num_leaves else ''}: {cut.words}"


def number_of(cut: Cut | None, node_id: int) -> int:
    """Return the number under which the user knows a node."""
    return node_id if cut is None else cut.numbers[node_id]


def lost_places(cut: Cut | None, node_id: int) -> tuple[int, ...]:
    """Return the positions of a node's cut edges: empty in the record, but not None edges."""
    return () if cut is None else cut.lost_places.get(node_id, ())


def uses_in_whole(graph: Graph, cut: Cut | None) -> Counter[int]:
    """Count the edges into each AccumulateGrad node, including cut ones."""
    uses = leaf_uses(graph)
    lost = {} if cut is None else cut.lost_users
    uses.update({leaf: count for leaf, count in lost.items() if graph.nodes[leaf].kind == "accumulate_grad"})
    return uses


def edges_of(graph: Graph, node_id: int) -> Iterator[tuple[int, Edge]]:
    """Yield the edges of a node that are not None, with their positions."""
    for position, edge in enumerate(graph.nodes[node_id].next_edges):
        if edge is not None:
            yield position, edge


def cut_graph(graph: Graph, kept: Collection[int], words: str) -> tuple[Graph, Cut]:
    """Keep some nodes in order, and renumber them."""
    numbers = tuple(sorted(kept))
    new_ids = {number: node_id for node_id, number in enumerate(numbers)}
    smaller = replace(
        graph,
        roots=tuple(replace(root, node=new_ids[root.node]) for root in graph.roots if root.node in new_ids),
        nodes=tuple(_kept_node(graph.nodes[number], new_ids) for number in numbers),
        gradients=None if graph.gradients is None else _kept_gradients(graph.gradients, new_ids),
    )
    users = Counter(
        new_ids[edge.next_node]
        for number in range(len(graph.nodes))
        if number not in new_ids
        for _, edge in edges_of(graph, number)
        if edge.next_node in new_ids
    )
    places = {
        new_ids[number]: lost
        for number in numbers
        if (lost := tuple(place for place, edge in edges_of(graph, number) if edge.next_node not in new_ids))
    }
    sizes = {"whole": _size(graph), "left": _size(smaller)}
    return smaller, Cut(words=words, numbers=numbers, **sizes, lost_places=places, lost_users=dict(users))


def _size(graph: Graph) -> Size:
    num_leaves = sum(node.kind == "accumulate_grad" for node in graph.nodes)
    return Size(len(graph.nodes) - num_leaves, num_leaves)


def _kept_node(node: Node, new_ids: dict[int, int]) -> Node:
    edges = tuple(
        None if edge is None or edge.next_node not in new_ids else replace(edge, next_node=new_ids[edge.next_node])
        for edge in node.next_edges
    )
    return replace(node, next_edges=edges, saved=tuple(_kept_value(value, new_ids) for value in node.saved))


def _kept_value(value: SavedValue, new_ids: dict[int, int]) -> SavedValue:
    if value.tensor is None or value.tensor.made_by is None:
        return value
    return replace(value, tensor=replace(value.tensor, made_by=new_ids.get(value.tensor.made_by)))


def _kept_gradients(gradients: Gradients, new_ids: dict[int, int]) -> Gradients:
    def kept(norms: dict[int, float]) -> dict[int, float]:
        return {new_ids[number]: norm for number, norm in norms.items() if number in new_ids}

    return replace(
        gradients,
        nodes=tuple(replace(ran, node=new_ids[ran.node]) for ran in gradients.nodes if ran.node in new_ids),
        weight_norms=kept(gradients.weight_norms),
        update_norms=kept(gradients.update_norms),
    )
