"""Units that are dead: nodes that returned only zeros, and that stand before other weights."""

from collections.abc import Mapping, Sequence

from gradinspect.checks.facts.backward_calls import BackwardEnded
from gradinspect.checks.findings import Place, place_of
from gradinspect.graph import Consumer, Frame, Graph, Record, consumers, frame_of

ZEROED = "zeroed"  # the role of the line of such a node


def zeroed_inside(ended: BackwardEnded) -> frozenset[Place]:
    """Return the lines of nodes that returned only zeros, and whose output went into a layer with weights.

    Such a unit is dead; a loss that is zero because its margin is kept is not.
    """
    graph = ended.graph
    killed = [note.node for note in ended.notes if note.kind == "killed" and note.node is not None]
    readers = consumers(graph) if killed else {}
    found: set[Place] = set()
    for number in killed:
        places = place_of(ZEROED, frame_of(graph, graph.nodes[number]))
        if not found.issuperset(places) and _is_followed_by_weights(graph, readers, number):
            found.update(places)
    return frozenset(found)


def _is_followed_by_weights(graph: Graph, readers: Mapping[int, Sequence[Consumer]], node_id: int) -> bool:
    after = reached(graph, [node_id], avoided=None)
    todo, seen = [node_id], {node_id}
    for number in todo:
        for reader, _ in readers.get(number, ()):
            if reader not in seen:
                seen.add(reader)
                todo.append(reader)
                own = [edge.next_node for edge in graph.nodes[reader].next_edges if edge is not None]
                if any(number not in after and _is_weight(graph, number) for number in own):
                    return True
    return False


def _is_weight(graph: Graph, node_id: int) -> bool:
    """Return whether a node is a matrix of weights, perhaps transposed."""
    node = graph.nodes[node_id]
    while node.leaf is None and node.name.startswith(("TBackward", "TransposeBackward")) and node.next_edges[0]:
        node = graph.nodes[node.next_edges[0].next_node]
    return node.leaf is not None and len(node.leaf.info.shape) > 1


def only_behind(graph: Graph, node_id: int) -> list[int]:
    """List the leaves that gradients reach only through one node."""
    return sorted(number for number in all_only_behind(graph, node_id) if graph.nodes[number].leaf is not None)


def all_only_behind(graph: Graph, node_id: int) -> set[int]:
    """Collect the nodes that gradients reach only through one node, which is one of them."""
    behind = reached(graph, [node_id], avoided=None)
    return behind - reached(graph, [root.node for root in graph.roots], avoided=node_id)


def reached(graph: Graph, starts: Sequence[int], avoided: int | None) -> set[int]:
    """Collect the nodes that backward reaches from some, on ways that do not lead through another one."""
    seen = {start for start in starts if start != avoided}
    todo = list(seen)
    for number in todo:
        for edge in graph.nodes[number].next_edges:
            if edge is not None and edge.next_node not in seen and edge.next_node != avoided:
                seen.add(edge.next_node)
                todo.append(edge.next_node)
    return seen


class SaturatedUnits(Record, frozen=True, kw_only=True):
    """An activation of the first layer is flat for nearly all units, from the first calls on."""

    function: str  # "sigmoid"
    share: float  # of the units of all examples, at least
    greatest: float  # of the absolute values of the data
    layer: Frame | None = None
    used: Frame | None = None
