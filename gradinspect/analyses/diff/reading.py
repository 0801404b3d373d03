"""Read a graph for a comparison: in an order that does not depend on ids, and each node as three numbers.

What comes in: a `Graph`. What goes out: a `Reading` of it. Two graphs that are compared share one `Numbering`.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

from gradinspect.analyses.diff.alignment import Key
from gradinspect.analyses.memory.saved_storages import held_bytes_by_node
from gradinspect.graph import Graph, Node, SavedValue, TensorInfo


class Numbering:
    """Gives equal things equal numbers."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._numbers: dict[Hashable, int] = {}
        self._keys: dict[Hashable, Key] = {}

    def of(self, thing: Hashable) -> int:
        """Return the number of a thing."""
        return self._numbers.setdefault(thing, len(self._numbers))

    def key(self, node: Node) -> Key:
        """Return what is compared of a node."""
        content = (node.name, node.function, node.forward_outputs, tuple(map(saved_content, node.saved)))
        known = self._keys.get(content)
        if known is None:
            shapes = tuple(None if info is None else info.shape for info in node.forward_outputs)
            operator = self.of((node.name, node.function))
            known = self._keys[content] = Key(self.of(content), operator, self.of(("shapes", shapes)))
        return known


SavedContent = tuple[str, int | None, object, TensorInfo | None, object]


def saved_content(value: SavedValue) -> SavedContent:
    """Return what is compared of a saved value: all but names and indices, which depend on the rest of the graph."""
    tensor = value.tensor
    if tensor is None:
        return value.name, value.index, value.value, None, (value.kind, value.status, value.packed_as)
    layout = (tensor.strides, tensor.storage_offset, value.status, value.origin, value.unpack_hook)
    return value.name, value.index, None, tensor.info, layout


@dataclass(kw_only=True)
class CallContent:
    """One module call, with what is in it."""

    path: str
    class_name: str
    number: int  # of the calls of this module
    parent: int | None
    children: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)  # its own, in the order of `Reading.order`
    place: int = -1  # of its last node in that order, or of the last one in a child: of what it returns
    content: int = -1  # equal for calls with the same class and equal nodes inside


class Reading:
    """A graph with what a comparison needs of it."""

    def __init__(self, graph: Graph, numbers: Numbering) -> None:
        """Read a graph.

        Args:
            graph: The graph.
            numbers: Shared with the graph that it is compared with.
        """
        self.graph = graph
        self.order = forward_order(graph)
        self.keys = [numbers.key(node) for node in graph.nodes]
        self.held = held_bytes_by_node(graph, self.order[::-1])
        self.calls = [
            CallContent(path=call.path, class_name=call.class_name, number=call.call, parent=call.parent)
            for call in graph.modules
        ]
        self.outside: list[int] = []  # nodes outside of all modules
        self.leaves: list[int] = []
        self._sort_into_calls()
        self._measure_calls(numbers)

    def _sort_into_calls(self) -> None:
        for place, node_id in enumerate(self.order):
            node = self.graph.nodes[node_id]
            if node.kind == "accumulate_grad":
                self.leaves.append(node_id)
            elif node.module is None:
                self.outside.append(node_id)
            else:
                call = self.calls[node.module]
                call.place = place
                call.nodes.append(node_id)

    def _measure_calls(self, numbers: Numbering) -> None:
        """Find each call's place and content from the inside out: a parent has a smaller index."""
        for index, call in enumerate(self.calls):
            if call.parent is not None:
                self.calls[call.parent].children.append(index)
        for call in reversed(self.calls):
            inside = [self.calls[child] for child in call.children]
            call.place = max([call.place, *(child.place for child in inside)])
            call.children.sort(key=lambda child: (self.calls[child].place, child))
            contents = tuple(self.calls[child].content for child in call.children)
            call.content = numbers.of((call.class_name, tuple(self.keys[n] for n in call.nodes), contents))


def forward_order(graph: Graph) -> list[int]:
    """List the ids so that each node follows those its gradients flow to, by the edges alone.

    The result is the same for each numbering of the nodes: a walk in depth from the roots, by position.
    """
    nodes, order, seen = graph.nodes, [], bytearray(len(graph.nodes))
    waiting = [*range(len(nodes) - 1, -1, -1), *(root.node for root in reversed(graph.roots))]
    while waiting:
        node_id = waiting.pop()
        if node_id < 0:
            order.append(~node_id)
        elif not seen[node_id]:
            seen[node_id] = 1
            waiting.append(~node_id)
            waiting += [edge.next_node for edge in reversed(nodes[node_id].next_edges) if edge is not None]
    return order
