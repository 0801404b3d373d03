"""Terms that a graph adds to its loss more than once, with a weight of 1 each time."""

from collections.abc import Iterator

from gradinspect.checks.facts.objectives import RepeatedTerm
from gradinspect.graph import Edge, Graph, Node, frame_of

_OF_ALL = ("MulBackward", "DivBackward", "NegBackward", "SumBackward", "MeanBackward", "ToCopyBackward")


def repeated_terms(graph: Graph) -> Iterator[RepeatedTerm]:
    """Yield what is added up more than once, and where; what the whole sum is multiplied with does not matter.

    Of a node with several outputs, as unbind() has, each is a term of its own.
    """
    counts = [0] * len(graph.nodes)
    adders: dict[Edge, list[Node]] = {}
    for root in graph.roots:
        counts[_sum_behind(graph, root.node)] = 1
    last = max((number for number, count in enumerate(counts) if count), default=-1)
    for number, node in enumerate(graph.nodes):  # from the root to the leaves
        if number > last:  # nearly all of a graph is not part of the sum
            return
        if counts[number] > 1 and _is_scalar(node):
            outputs = [Edge(next_node=number, input_nr=output) for output in range(len(node.forward_outputs))]
            yield from _repeated(graph, node, [adders[output] for output in outputs if output in adders])
            continue
        for edge in node.next_edges if counts[number] and _adds(node) else ():
            if edge is not None:
                counts[edge.next_node] += 1
                last = max(last, edge.next_node)
                adders.setdefault(edge, []).append(node)


def _repeated(graph: Graph, node: Node, adding: list[list[Node]]) -> Iterator[RepeatedTerm]:
    """Yield the outputs of a node that several nodes add, given the nodes that add each of them."""
    for nodes in adding:
        if len(nodes) > 1:
            used = tuple(dict.fromkeys(frame_of(graph, one) for one in reversed(nodes)))
            yield RepeatedTerm(count=len(nodes), first=frame_of(graph, node), used=used)


def _sum_behind(graph: Graph, number: int) -> int:
    """Return the node behind those that have one input, and one number or a stack of them to pass on."""
    while (node := graph.nodes[number]).name.startswith(_OF_ALL) and _is_scalar(node):
        behind = [edge.next_node for edge in node.next_edges if edge is not None]
        if len(behind) != 1 or not (_is_scalar(graph.nodes[behind[0]]) or _adds(graph.nodes[behind[0]])):
            break
        (number,) = behind
    return number


def _adds(node: Node) -> bool:
    """Return whether a node adds single numbers up without weights."""
    if node.name.startswith("StackBackward"):
        return all(output is not None and len(output.shape) == 1 for output in node.forward_outputs)
    weights = [value.value for value in node.saved if value.name == "_saved_alpha"]
    return node.name.startswith("AddBackward") and _is_scalar(node) and all(weight == 1 for weight in weights)


def _is_scalar(node: Node) -> bool:
    return bool(node.forward_outputs) and all(
        output is not None and not output.shape for output in node.forward_outputs
    )
