"""How gradients flow between the items of one scope, and in which order to list them.

What comes in: a scope's items. What goes out: a `Flow`: for each item, the items listed under it. An item is listed
under its immediate dominator, so everything is listed once, and before the items its gradients go to.

NOTE [Trunk and branches]
A chain is a straight line, the trunk. After a fork, what only one side leads to is a branch, listed first; the item
where branches meet again (a residual add) follows in the fork's own column. If nothing meets, the largest branch is the
trunk. A parameter's transpose or cast is always a branch, however many edges meet there: it ends in a leaf.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradinspect.analyses.structure.dominators import ENTRY, DominatorTree, dominator_tree
from gradinspect.analyses.structure.folding import Item, node_ids
from gradinspect.analyses.structure.shape_chains import shape_name
from gradinspect.graph import Edge, Graph, Node

CAST = "ToCopyBackward0"


class Listed(NamedTuple):
    """The places listed under one place."""

    branches: tuple[int, ...] = ()
    trunks: tuple[int, ...] = ()  # in its own column, one after another


class Flow:
    """The listing order of the items of one scope; a place is an index into `items`."""

    def __init__(self, graph: Graph, items: Sequence[Item], continuation: range) -> None:
        """Order the items.

        Args:
            graph: The graph.
            items: Node ids and scopes, in id order.
            continuation: The ids listed right after the scope; their place is `len(items)`. Empty if nothing follows.
        """
        self.graph = graph
        self.items = items
        self.continuation = continuation
        ranges = [node_ids(item) for item in items]
        self._starts = [ids.start for ids in ranges] + [ids.stop for ids in ranges[-1:]]
        predecessors = self._predecessors()
        self._meets = [len(sources) > 1 for sources in predecessors]
        self._children, self._weights = _children(
            dominator_tree(predecessors), [*map(len, ranges), 0][: len(predecessors)]
        )

    def place_of(self, node_id: int) -> int | None:
        """Return the place of the item with a node, or of the continuation; None for elsewhere."""
        if self._starts and self._starts[0] <= node_id < self._starts[-1]:
            return bisect_right(self._starts, node_id) - 1
        return len(self.items) if node_id in self.continuation else None

    def entries(self) -> list[int]:
        """Return the places that are listed under no other."""
        return [place for place in self._children.get(ENTRY, []) if place < len(self.items)]

    def listed_under(self, place: int) -> Listed:
        """Split the places listed under one place into branches and trunks."""
        children = self._children.get(place)
        if children is None:
            return Listed()
        if len(children) == 1 and self._num_edges(place) == 1:
            return Listed(trunks=(children[0],))
        mains = [child for child in children if not self.is_view_of_leaf(child)]
        trunks = [child for child in mains if self._meets[child] or child == len(self.items)]
        if mains and not trunks:
            trunks = [max(mains, key=lambda child: (self._weights[child], child))]
        own_column = set(trunks)
        return Listed(tuple(child for child in children if child not in own_column), tuple(trunks))

    def is_view_of_leaf(self, place: int) -> bool:
        """Return whether only views and casts are between a place and a leaf."""
        nodes = self.graph.nodes
        while place < len(self.items):
            item = last_of_chain(self.items[place])
            children = self._children.get(place, [])
            if item is None or not _is_view(nodes[item]) or len(children) > 1:
                return False
            if any(
                edge is not None and nodes[edge.next_node].kind == "accumulate_grad" for edge in nodes[item].next_edges
            ):
                return True
            if not children:
                return False
            place = children[0]
        return False

    def _num_edges(self, place: int) -> int:
        """Count the edges of a node; a scope counts as many."""
        item = self.items[place]
        return sum(edge is not None for edge in self.graph.nodes[item].next_edges) if isinstance(item, int) else 2

    def _predecessors(self) -> list[list[int]]:
        predecessors: list[list[int]] = [[] for _ in range(len(self.items) + 1)]
        for place, item in enumerate(self.items):
            targets = {self.place_of(edge.next_node) for edge in edges_out(self.graph, item)}
            for target in targets:
                if target is not None:
                    predecessors[target].append(place)
        if not predecessors[-1]:
            predecessors.pop()
        return predecessors


def _is_view(node: Node) -> bool:
    return node.name == CAST or shape_name(node) is not None


def last_of_chain(item: Item) -> int | None:
    """Return a node itself, the last node of a chain of views, and None for any other scope."""
    if isinstance(item, int):
        return item
    return node_ids(item).stop - 1 if item.kind == "shapes" else None


def edges_out(graph: Graph, item: Item) -> Iterator[Edge]:
    """Yield the edges from an item's nodes to nodes outside it, except AccumulateGrad nodes."""
    ids = node_ids(item)
    nodes = graph.nodes
    for node_id in ids:
        for edge in nodes[node_id].next_edges:
            if edge is not None and edge.next_node >= ids.stop and nodes[edge.next_node].kind != "accumulate_grad":
                yield edge


def _children(tree: DominatorTree, weights: list[int]) -> tuple[dict[int, list[int]], list[int]]:
    """Return the places under each place, and the number of nodes in each subtree."""
    children: dict[int, list[int]] = {}
    for place in range(len(weights)):
        children.setdefault(tree.parent(place), []).append(place)
    for place in reversed(range(len(weights))):
        parent = tree.parent(place)
        if parent != ENTRY:
            weights[parent] += weights[place]
    return children, weights
