"""Why a node lets no gradient through, where the nodes around it show the reason."""

from gradinspect.checks.facts.backward_calls import BackwardEnded
from gradinspect.checks.findings import line_of, place_of
from gradinspect.checks.rules.gradients.gradient_causes import Cause, operator_of
from gradinspect.checks.rules.losses.loss_graph import axis_of, has_same_values, made_input, output_shape
from gradinspect.graph import Graph, Node, consumers, frame_of
from gradinspect.units import format_shape

_PRODUCTS = ("MulBackward", "BmmBackward", "MmBackward", "MvBackward", "DotBackward", "BaddbmmBackward")
_PUTS = ("ScatterBackward", "NativeDropoutBackward", "ExpandBackward", "IndexPutBackward", "IndexCopyBackward")
_SELECTS = ("TopkBackward", "SortBackward", "KthvalueBackward", "MaxBackward", "AmaxBackward")
_LAYERS = ("AddmmBackward", "ConvolutionBackward", "AddBackward")
_FILLS = frozenset(("fill", "constant", "full", "full_like", "zero"))


def length_one_cause(graph: Graph, number: int) -> Cause | None:
    """Explain a softmax over one element: as weights inside the model, or as probabilities."""
    node = graph.nodes[number]
    dim = axis_of(node) if operator_of(node) in ("Softmax", "LogSoftmax") else None
    shape = output_shape(node)
    if dim is None or not dim < len(shape) or shape[dim] != 1:
        return None
    why = (
        f"It normalizes over dimension {dim} of {format_shape(shape)}, which has length 1, so its result is "
        "the same for every input."
    )
    if _multiplies(graph, number):
        return Cause((operator_of(node),), why, _weights_remedy(graph, node, dim))
    return Cause(
        (operator_of(node),),
        why,
        "For one value between 0 and 1, use sigmoid, or pass the scores to binary_cross_entropy_with_logits if that is "
        "the loss. For classes, let the layer before it return one column per class: two for yes or no.",
    )


def _multiplies(graph: Graph, start: int) -> bool:
    """Return whether what a node made is multiplied with something, as the weights of attention or of experts are."""
    readers = consumers(graph)
    todo, seen = [start], {start}
    for number in todo:
        for reader, _ in readers.get(number, ()):
            node = graph.nodes[reader]
            if node.name.startswith(_PRODUCTS):
                return True
            if (has_same_values(node) or node.name.startswith(_PUTS)) and reader not in seen:
                seen.add(reader)
                todo.append(reader)
    return False


def _weights_remedy(graph: Graph, node: Node, dim: int) -> str:
    before = made_input(graph, node)
    if before is not None and before.node.name.startswith(_SELECTS):
        return (
            f"Apply softmax to all scores, before {line_of(frame_of(graph, before.node))} selects some of them, and "
            "select among its results."
        )
    shape = output_shape(node)
    others = [place for place, length in enumerate(shape) if place not in (0, dim) and length != 1]
    if not others:
        things = f"the {shape[0]} of dimension 0" if dim and shape[0] != 1 else "several things"
        weigh = "normalize over that" if dim and shape[0] != 1 else "let the layer before it return a score for each"
        return f"Does it weigh {things}, or is it a gate? To weigh, {weigh}. For a gate between 0 and 1, use sigmoid."
    named = " or ".join(f"dimension {place} (of length {shape[place]})" for place in others)
    return (
        f"Normalize over the dimension that the weights are summed over, {named}; for a gate between 0 and 1, use "
        "sigmoid."
    )


def dead_unit_cause(ended: BackwardEnded, number: int) -> Cause | None:
    """Explain a ReLU of which every input is negative by a bias that the program has set to a negative value."""
    graph = ended.graph
    before = made_input(graph, graph.nodes[number])
    if before is None or not before.node.name.startswith(_LAYERS):
        return None
    for edge in before.node.next_edges:
        leaf = None if edge is None else graph.nodes[edge.next_node].leaf
        if edge is None or leaf is None or len(leaf.info.shape) != 1:
            continue
        values = ended.values_of(edge.next_node)
        if values is not None and values.op in _FILLS and values.highest() < 0 and values.frame is not None:
            where = line_of(values.frame)
            return Cause(
                ("Relu",),
                f"Every element is negative: the unit is dead. Its bias {leaf.name or ''} was set at {where}, and is "
                f"at most {values.highest():.3g}.".replace("  ", " "),
                f"Use leaky_relu or gelu, or set the bias to 0 at {where}.",
                places=place_of("bias", values.frame),
            )
    return None
