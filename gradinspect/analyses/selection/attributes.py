"""Every node and edge of a graph with plain attributes, as tools for graphs take them."""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from gradinspect.analyses.selection.finding import find_nodes
from gradinspect.graph import Graph, argument_name

Attributes: TypeAlias = dict[str, str | int]  # "": there is none


class PlainNode(NamedTuple):
    """A node: its class, module, line, bytes held, shapes, leaf, and the statuses of what it saves."""

    id: int
    attributes: Attributes


class PlainEdge(NamedTuple):
    """An edge: which position of its source it is, which input of its target, and the argument of the operator."""

    source: int
    target: int
    attributes: Attributes


def plain_nodes(graph: Graph) -> Iterator[PlainNode]:
    """Yield all nodes."""
    for row in find_nodes(graph):
        attributes: Attributes = {
            "name": row.name,
            "module": row.module or "",
            "line": row.line or "",
            "held_bytes": row.held_bytes,
            "outputs": ", ".join(row.outputs),
            "leaf": row.leaf or "",
            "statuses": ", ".join(row.statuses),
        }
        yield PlainNode(row.id, attributes)


def plain_edges(graph: Graph) -> Iterator[PlainEdge]:
    """Yield all edges, of each node in the order of its positions."""
    for number, node in enumerate(graph.nodes):
        for position, edge in enumerate(node.next_edges):
            if edge is not None:
                argument = argument_name(graph, node, position) or ""
                attributes: Attributes = {"position": position, "input_nr": edge.input_nr, "argument": argument}
                yield PlainEdge(number, edge.next_node, attributes)
