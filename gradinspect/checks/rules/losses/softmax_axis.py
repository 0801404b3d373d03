"""A softmax before a loss that runs over the wrong axis: over the batch, or over one column.

NOTE [Which axis is wrong]
nll_loss and cross_entropy take classes on axis 1. Elsewhere, axis 0 is the batch where the scores come straight from a
layer and the result goes straight into a loss; a softmax over axis 0 of anything else may be a pooling over a set. In
three or more dimensions, it is the batch if the loss has as many rows, and no other axis is as long; and where a
convolution has made all four or five of them. In two dimensions, it is the batch if the loss has as many rows and the
result weighs what is summed over axis 1 for each row: such weights add up to 1 over the wrong axis.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.findings import Finding, Place, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.losses.loss_graph import (
    NEGATIVE_LOG_LIKELIHOOD,
    axis_of,
    has_same_values,
    is_activation_module,
    made_input,
    module_words,
    name_of_module,
    name_of_softmax,
    output_shape,
    readers_of,
)
from gradinspect.graph import Consumer, Graph, Node, consumers, frame_of, nodes_named
from gradinspect.units import format_shape

_LAYERS = ("Addmm", "Mm", "Convolution")
_SEQUENCES = ("CtcLossBackward", "CudnnCtcLossBackward")  # of [time, batch, classes]
_LOSSES = (
    *NEGATIVE_LOG_LIKELIHOOD, *_SEQUENCES, "MseLossBackward", "BinaryCrossEntropyBackward", "SmoothL1LossBackward",
)  # fmt: skip
_WITH_ROWS = (
    *_LOSSES, "BinaryCrossEntropyWithLogitsBackward", "HuberLossBackward", "KlDivBackward", "SoftMarginLossBackward",
)  # fmt: skip
_SUMS = ("SumBackward", "MeanBackward")
_BY_ELEMENT = tuple(
    f"{name}Backward" for name in ("Abs", "Add", "Clamp", "ClampMin", "Div", "Log", "Mul", "Neg", "Pow", "Rsub", "Sub")
)

AXIS = Rule(
    code="GI353",
    title="softmax over the wrong axis",
    summary="A softmax before a loss runs over the batch, or over a single column.",
    explanation="softmax makes the values along one axis add up to 1. With dim=0 that axis is the batch: the "
    "probability of an example depends on the other examples, and the classes of one example do not add up to 1. "
    "An attention over [batch, time, 1] mixes examples so. "
    "Without dim, torch takes axis 0 for one or three dimensions. Over a single column every output is exactly 1, "
    "whatever the scores are: the loss is constant and no parameter learns. nn.CrossEntropyLoss on a model with "
    "one output does the same.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
  x, y = torch.randn(16, 8), torch.randint(4, (16,))
- p = torch.log_softmax(model(x), dim=0)  # 0 is the batch
+ p = torch.log_softmax(model(x), dim=1)
  loss = nn.functional.nll_loss(p, y)
  loss.backward()
""",
    remedy="Use the axis of the classes, dim=1 for [batch, classes]. For one output, use "
    "binary_cross_entropy_with_logits, or let the model have two.",
    explains_gradients=True,
    explains=("GI380",),
)


def axis_findings(starts: BackwardStarts) -> Iterator[Finding]:
    """Find each softmax that runs over the wrong axis on its way into a loss."""
    graph = starts.graph
    softmaxes = nodes_named(graph, ("SoftmaxBackward", "LogSoftmaxBackward"))
    if not softmaxes:
        return
    readers, direct = readers_of(graph), consumers(graph)
    for number in softmaxes:
        node = graph.nodes[number]
        axis, shape = axis_of(node), output_shape(node)
        if axis is None or not axis < len(shape) or 0 in shape:
            continue
        losses = [graph.nodes[reader] for reader in _readers_after_log(graph, readers, number)]
        loss = next((loss for loss in losses if loss.name.startswith(_LOSSES)), None)
        if shape[axis] == 1:
            reduced = loss or _reduction(graph, direct, number)
            if reduced is not None:
                yield _one_column(starts, node, reduced)
        elif loss is not None and _is_batch(graph, node, axis, loss):
            yield _over_batch(starts, node, axis, loss)
        elif axis == 0 and len(shape) > 1:
            yield from _in_more_dimensions(starts, node) if len(shape) > 2 else _as_weights(starts, readers, number)


JUDGE = Judge(BackwardStarts, axis_findings)


def _readers_after_log(graph: Graph, readers: Mapping[int, Sequence[int]], number: int) -> Iterator[int]:
    for reader in readers.get(number, ()):
        yield reader
        if graph.nodes[reader].name.startswith("LogBackward"):
            yield from readers.get(reader, ())


def _is_batch(graph: Graph, node: Node, axis: int, loss: Node) -> bool:
    """Return whether a softmax over more than one element runs over the batch. NOTE [Which axis is wrong]."""
    shape = output_shape(node)
    if axis == _class_axis(node, loss) or len(shape) < 2 or shape[1] == 1:
        return False
    first = made_input(graph, loss)
    if first is None:
        return False
    if loss.name.startswith((*NEGATIVE_LOG_LIKELIHOOD, *_SEQUENCES)):
        return first.is_direct and (first.node is node or _is_log_of(graph, first.node, node))
    scores = made_input(graph, node)
    return axis == 0 and len(shape) == 2 and scores is not None and scores.node.name.startswith(_LAYERS)


def _class_axis(node: Node, loss: Node) -> int:
    """Return the axis on which a loss expects the classes."""
    return len(output_shape(node)) - 1 if loss.name.startswith(_SEQUENCES) else 1


def _with_rows(graph: Graph, shape: tuple[int | str, ...]) -> Node | None:
    """Return the loss, if what it reduces has as many rows as a shape, and fewer dimensions."""
    losses = [graph.nodes[number] for number in nodes_named(graph, _WITH_ROWS)]
    inputs = [None if (edge := loss.next_edges[0]) is None else graph.nodes[edge.next_node] for loss in losses]
    shapes = [() if one is None else output_shape(one) for one in inputs]
    is_batch = all(one[:1] == shape[:1] and len(one) < len(shape) for one in shapes)
    return losses[0] if losses and is_batch else None


def _weights_over_batch(starts: BackwardStarts, node: Node, loss: Node) -> Finding:
    graph, shape = starts.graph, output_shape(node)
    axis = -1 if shape[-1] != 1 else len(shape) - 2
    return AXIS.finding(
        text=f"{_name(graph, node, loss)} runs over axis 0 of {_written(node)}, which is the batch: the loss has "
        f"{shape[0]} rows as well. The weights of one example depend on the other examples, and do not add up to 1.",
        places=_places(starts, node, loss),
        remedy=f"Pass dim={axis} at {line_of(frame_of(graph, node))}.",
    )


def _in_more_dimensions(starts: BackwardStarts, node: Node) -> Iterator[Finding]:
    """Look at a softmax over axis 0 of three dimensions or more. NOTE [Which axis is wrong]."""
    shape, graph = output_shape(node), starts.graph
    rows = _with_rows(graph, shape) if shape.count(shape[0]) == 1 else None
    if rows is not None:
        yield _weights_over_batch(starts, node, rows)
    elif len(shape) > 3 and shape[0] != 1 and _is_of_convolution(graph, node):
        yield _maps_over_batch(starts, node)


def _as_weights(starts: BackwardStarts, readers: Mapping[int, Sequence[int]], number: int) -> Iterator[Finding]:
    """Look at a softmax over axis 0 of two dimensions, by whose result values are summed over axis 1."""
    graph, node = starts.graph, starts.graph.nodes[number]
    rows, places = output_shape(node)
    if rows == places or not any(_sums_places(graph, readers, one, (rows, places)) for one in readers.get(number, ())):
        return
    inputs = ((graph.nodes[loss], made_input(graph, graph.nodes[loss])) for loss in nodes_named(graph, _WITH_ROWS))
    losses = [loss for loss, made in inputs if made is not None and output_shape(made.node)[:1] == (rows,)]
    if losses:
        yield _weights_over_batch(starts, node, losses[0])


def _sums_places(
    graph: Graph, readers: Mapping[int, Sequence[int]], number: int, weights: tuple[int | str, int | str]
) -> bool:
    """Return whether a product with weights [rows, places] is summed over places, for each row by itself."""
    (rows, places), name, shape = weights, graph.nodes[number].name, output_shape(graph.nodes[number])
    if name.startswith("BmmBackward"):
        return shape[:1] == (rows,) and places not in shape[1:]
    if not name.startswith("MulBackward") or shape[:2] != weights or len(shape) < 3:
        return False
    sums = [graph.nodes[one] for one in readers.get(number, ()) if graph.nodes[one].name.startswith(_SUMS)]
    return any(output_shape(one)[:1] == (rows,) and places not in output_shape(one)[1:] for one in sums)


def _is_of_convolution(graph: Graph, node: Node) -> bool:
    scores = made_input(graph, node)
    return (
        scores is not None
        and scores.node.name.startswith("Convolution")
        and output_shape(scores.node) == output_shape(node)
    )


def _maps_over_batch(starts: BackwardStarts, node: Node) -> Finding:
    applied = frame_of(starts.graph, node)
    return AXIS.finding(
        text=f"{node.name.partition('Backward')[0].lower()} runs over axis 0 of {_written(node)}, which a "
        "convolution has made: that is the batch. The values of one example depend on the other examples, and do not "
        "add up to 1.",
        places=(*place_of("softmax", applied), *place_of("backward", starts.backward)),
        remedy=f"Pass dim=1, the channels, at {line_of(applied)}.",
    )


def _is_log_of(graph: Graph, log: Node, node: Node) -> bool:
    before = made_input(graph, log)
    return log.name.startswith("LogBackward") and before is not None and before.is_direct and before.node is node


def _reduction(graph: Graph, readers: Mapping[int, Sequence[Consumer]], start: int) -> Node | None:
    """Follow the elements through arithmetic with constants to the node that reduces them; None if they meet others."""
    todo, seen = [start], {start}
    size = _num_elements(graph.nodes[start])
    for number in todo:
        for reader, _ in readers.get(number, ()):
            node = graph.nodes[reader]
            learned = [edge for edge in node.next_edges if edge is not None]
            if node.name.startswith(_SUMS) and output_shape(node) == ():
                return node
            is_same = has_same_values(node) or (node.name.startswith(_BY_ELEMENT) and len(learned) == 1)
            if is_same and reader not in seen and _num_elements(node) == size:
                seen.add(reader)
                todo.append(reader)
    return None


def _num_elements(node: Node) -> int:
    return prod(length for length in output_shape(node) if isinstance(length, int))


def _one_column(starts: BackwardStarts, node: Node, loss: Node) -> Finding:
    graph = starts.graph
    name = node.name.partition("Backward")[0]
    value = "0" if name == "LogSoftmax" else "1"
    return AXIS.finding(
        text=f"{_name(graph, node, loss)} runs over an axis of length 1 of {_written(node)}, so every output is "
        f"exactly {value}, whatever the scores are. The loss is constant, and no gradient reaches the parameters.",
        places=_places(starts, node, loss),
        remedy="For one output, use sigmoid instead of softmax: binary_cross_entropy_with_logits on the logits, with "
        "targets of the same shape and dtype. Or let the model have one output for each of the two classes.",
    )


def _over_batch(starts: BackwardStarts, node: Node, axis: int, loss: Node) -> Finding:
    graph = starts.graph
    wanted = _class_axis(node, loss)
    axis_words = "axis 0, the batch" if axis == 0 and wanted == 1 else f"axis {axis}"
    where = f"at {line_of(frame_of(graph, node))}"
    if is_activation_module(graph, node):
        where = f"where that {name_of_module(graph, node)} is made"
    return AXIS.finding(
        text=f"{_name(graph, node, loss)} runs over {axis_words}, of {_written(node)}; the loss expects the classes "
        f"on axis {wanted}. The probabilities of one example do not add up to 1, and depend on the other examples.",
        places=_places(starts, node, loss),
        remedy=f"Pass dim={wanted} {where}.",
    )


def _places(starts: BackwardStarts, node: Node, loss: Node) -> list[Place]:
    applied, reduced = frame_of(starts.graph, node), frame_of(starts.graph, loss)
    is_module = is_activation_module(starts.graph, node)
    return [
        *place_of("layer", starts.made_at(name_of_module(starts.graph, node)) if is_module else None),
        *place_of("softmax", applied),
        *place_of("loss", reduced if reduced != applied else None),
        *place_of("backward", starts.backward),
    ]


def _name(graph: Graph, node: Node, loss: Node) -> str:
    """Name the function, or the module that is nothing else."""
    words = module_words(graph, node) if is_activation_module(graph, node) else ""
    return f"{name_of_softmax(graph, node, loss)}{words}"


def _written(node: Node) -> str:
    return format_shape(output_shape(node))
