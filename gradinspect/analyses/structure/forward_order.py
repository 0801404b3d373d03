"""List a graph in the order of the forward pass: from the inputs to the loss.

What comes in: a graph, its folding, and which scopes are expanded. What goes out: rows as data. Ids are in reverse
order of creation (NOTE [Topological ids]), so the forward pass is the same rows from the last to the first, without
branches: each row names its inputs, unless the row above is the only one. A view of a parameter (`weight.t()`) has no
row: it is an input of its user.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from gradinspect.analyses.memory.held import VIEWS
from gradinspect.analyses.structure.flow import edges_out
from gradinspect.analyses.structure.folding import Item, Scope, node_ids
from gradinspect.analyses.structure.outline import IsOpen, body_of, unwrapped
from gradinspect.graph import Graph, Record, num_consumers


class ForwardRow(Record, frozen=True, kw_only=True):
    """A node or a scope, and the nodes whose outputs it takes; AccumulateGrad nodes are leaves among them."""

    item: Item
    level: int  # number of expanded scopes around it
    is_open: bool = False
    call: int | None = None  # the module call, if this is its only node
    inputs: tuple[int, ...] = ()  # without the node of the row above, if all others are leaves
    views: tuple[int, ...] = ()  # of leaves, which have no row of their own


_Place: TypeAlias = tuple[Item | None, int]  # None: the end of a repeat, and the node that its last copy ends with


def forward_rows(graph: Graph, folded: Scope, is_open: IsOpen) -> Iterator[ForwardRow]:
    """Yield the rows from the inputs to the loss."""
    leaves = _views_of_leaves(graph)
    waiting: list[_Place] = [(item, 0) for item in folded.items]
    above: int | None = None
    while waiting:
        whole, level = waiting.pop()
        if whole is None:
            above = level
            continue
        item, call = unwrapped(whole)
        if isinstance(item, int) and item in leaves:
            continue
        if isinstance(item, Scope) and is_open(item, level):
            yield ForwardRow(item=item, level=level, is_open=True)
            waiting += [(None, node_ids(item).start)] if item.copies else []
            waiting += [(inner, level + 1) for inner in body_of(item, len(item.copies))]
            continue
        sources = _sources(graph, item)
        views = tuple(source for source in sources if source in leaves)
        inputs = tuple(dict.fromkeys(leaves.get(source, source) for source in sources))
        made = [source for source in inputs if graph.nodes[source].kind != "accumulate_grad"]
        if made == [above]:
            inputs = tuple(source for source in inputs if source != above)
        yield ForwardRow(item=item, level=level, call=call, inputs=inputs, views=views)
        above = node_ids(item).start


def _sources(graph: Graph, item: Item) -> Sequence[int]:
    """Return the nodes outside an item that its forward ops take tensors from."""
    if isinstance(item, Scope):
        return sorted({edge.next_node for edge in edges_out(graph, item)})
    return [edge.next_node for edge in graph.nodes[item].next_edges if edge is not None]


def _views_of_leaves(graph: Graph) -> Mapping[int, int]:
    """Map each view of a leaf that one node uses to the leaf."""
    uses = num_consumers(graph)
    leaves: dict[int, int] = {}
    for node_id in range(len(graph.nodes) - 1, -1, -1):
        node = graph.nodes[node_id]
        edge = node.next_edges[0] if len(node.next_edges) == 1 else None
        if edge is None or uses[node_id] != 1 or node.name not in VIEWS or node.hooks:
            continue
        if graph.nodes[edge.next_node].kind == "accumulate_grad":
            leaves[node_id] = edge.next_node
        elif edge.next_node in leaves:
            leaves[node_id] = leaves[edge.next_node]
    return leaves
