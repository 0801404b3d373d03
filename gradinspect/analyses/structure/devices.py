"""Where gradients go from one device to another."""

from collections.abc import Iterable
from typing import NamedTuple

from gradinspect.graph import Graph, Node


class Crossing(NamedTuple):
    """An edge between two devices, in the direction of gradients."""

    tail: int  # node
    head: int  # node
    start: str  # device
    end: str


def device_of(node: Node) -> str | None:
    """Return the device of the gradient that a node takes; None if nothing is known of it."""
    if node.leaf is not None:
        return node.leaf.info.device
    return next((info.device for info in node.forward_outputs if info is not None), None)


def crossings(graph: Graph) -> dict[int, tuple[Crossing, ...]]:
    """Find the edges between nodes of two devices.

    Returns:
        Node -> those that leave it; empty for a graph on one device.
    """
    devices = [device_of(node) for node in graph.nodes]
    if len(set(devices) - {None}) < 2:
        return {}
    found: dict[int, tuple[Crossing, ...]] = {}
    for tail, node in enumerate(graph.nodes):
        start = devices[tail]
        heads = dict.fromkeys(edge.next_node for edge in node.next_edges if edge is not None)
        ends = [(head, end) for head in heads if start and (end := devices[head]) and end != start]
        if start and ends:
            found[tail] = tuple(Crossing(tail, head, start, end) for head, end in ends)
    return found


def ends_of(found: Iterable[Crossing]) -> tuple[str, ...]:
    """List the devices that some edges lead to, each once."""
    return tuple(dict.fromkeys(one.end for one in found))
