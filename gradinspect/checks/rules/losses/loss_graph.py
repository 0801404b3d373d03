"""What the rules about losses read in a graph: what made the input of a node, and what reads its output."""

import re
from typing import NamedTuple

from gradinspect.graph import Graph, Node, frame_of, nodes_named

NEGATIVE_LOG_LIKELIHOOD = ("NllLossBackward", "NllLoss2DBackward", "NllLossNdBackward")
# they return the elements they are given, perhaps fewer or repeated, in another shape or dtype
_SAME_VALUES = tuple(
    f"{name}Backward"
    for name in (
        "Alias", "AsStrided", "Clone", "Expand", "Index", "Narrow", "Permute", "ReshapeAlias", "Select", "Slice",
        "Squeeze", "T", "ToCopy", "Transpose", "Unsqueeze", "UnsafeView", "View",
    )
)  # fmt: skip
_UNSIGNED = 2**63


class MadeInput(NamedTuple):
    """The node that made the values of an input."""

    number: int
    node: Node
    is_direct: bool  # nothing has selected, moved or converted them since


def made_input(graph: Graph, node: Node) -> MadeInput | None:
    """Find the node that computed the first input of a node, past views and copies; None if that needs no gradient."""
    edge = node.next_edges[0] if node.next_edges else None
    return None if edge is None else maker(graph, edge.next_node)


def maker(graph: Graph, number: int) -> MadeInput | None:
    """Find the node that computed the values of a node, past views and copies; None if that needs no gradient."""
    is_direct = True
    while has_same_values(graph.nodes[number]):
        edges = graph.nodes[number].next_edges
        if not edges or edges[0] is None:
            return None
        number, is_direct = edges[0].next_node, False
    return MadeInput(number, graph.nodes[number], is_direct)


def has_same_values(node: Node) -> bool:
    """Return whether a node only selects, moves or converts elements."""
    return node.name.startswith(_SAME_VALUES)


def readers_of(graph: Graph) -> dict[int, list[int]]:
    """List for each node those that compute with its values, past views and copies."""
    passing = set(nodes_named(graph, _SAME_VALUES))
    found: dict[int, list[int]] = {}
    for number, node in enumerate(graph.nodes):  # a reader has a smaller number
        readers = found.get(number, ()) if number in passing else (number,)
        for edge in node.next_edges:
            if edge is not None:
                found.setdefault(edge.next_node, []).extend(readers)
    return found


def output_shape(node: Node) -> tuple[int | str, ...]:
    """Return the shape of a node's first forward output; empty if it is not known."""
    info = node.forward_outputs[0] if node.forward_outputs else None
    return () if info is None else info.shape


def saved_as(node: Node, name: str) -> object:
    """Return the value that a node has saved under a name, such as `_saved_dim`; None if it has none."""
    return next((saved.value for saved in node.saved if saved.name == name), None)


def axis_of(node: Node) -> int | None:
    """Return the axis of a softmax, counted from the front; None if it is not known."""
    value = saved_as(node, "_saved_dim")
    if not isinstance(value, int):
        return None
    return axis_from_front(value, len(output_shape(node)))


def axis_from_front(value: int, num_axes: int) -> int:
    """Count an axis from the front, of a tensor with a number of axes, as a node has saved it."""
    signed = value - 2 * _UNSIGNED if value >= _UNSIGNED else value  # torch shows -1 as an unsigned number
    return signed + num_axes if signed < 0 else signed


def name_of_softmax(graph: Graph, node: Node, reader: Node | None) -> str:
    """Name the function that made a node of a softmax, as far as its line, its module and its reader show it."""
    if node.name.startswith("SoftmaxBackward"):
        return "softmax"
    frame = frame_of(graph, node)
    is_written = frame is not None and re.search(r"log_?softmax", frame.code, re.IGNORECASE)
    is_one_call = reader is not None and reader.frame == node.frame
    return "cross_entropy" if is_one_call and not (is_written or is_activation_module(graph, node)) else "log_softmax"


def name_of_module(graph: Graph, node: Node) -> str:
    """Return the class of the module that made a node."""
    return "" if node.module is None else graph.modules[node.module].class_name


def is_activation_module(graph: Graph, node: Node) -> bool:
    """Return whether the module that made a node is a Softmax, LogSoftmax or Sigmoid, and no more."""
    return node.name.partition("Backward")[0] == name_of_module(graph, node)


def module_words(graph: Graph, node: Node) -> str:
    """Name the module that made a node: ` (module 2, Softmax)`; empty if none did."""
    if node.module is None:
        return ""
    call = graph.modules[node.module]
    return f" (module {call.path}, {call.class_name})" if call.path else ""
