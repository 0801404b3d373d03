"""Accidental broadcasting: `[64, 1] - [64]` that grows to `[64, 64]` under a loss, told apart from intentional uses."""

import re
from collections.abc import Iterator, Mapping
from math import prod

from gradinspect.checks.facts.backward_calls import GrownGraph
from gradinspect.checks.facts.broadcasts import (
    GrownOperator,
    Shape,
    is_square_against_side,
    slipped_shape,
    without_ones,
)
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.losses.loss_graph import output_shape
from gradinspect.graph import Consumer, Frame, Graph, Node, consumers, frame_of
from gradinspect.units import format_shape

_ELEMENTWISE = tuple(
    f"{name}Backward"
    for name in (
        "Abs", "Add", "Clamp", "ClampMax", "ClampMin", "Cosh", "Div", "Exp", "Expm1", "Log", "Log1p", "LogSigmoid",
        "Maximum", "Minimum", "Mul", "Neg", "Pow", "Relu", "Rsub", "Sigmoid", "Softplus", "Sqrt", "Sub", "Tanh",
        "ToCopy",
    )
)  # fmt: skip
_REDUCTIONS = ("MeanBackward", "SumBackward", "LinalgVectorNormBackward", "NormBackward", "NansumBackward")
# how people write that they want all pairs; view(-1) and reshape(-1) add no dimension
_ON_PURPOSE = re.compile(r"\bNone\b|newaxis|unsqueeze|expand|broadcast|outer|einsum|(?:view|reshape)\((?!-1\))[^()]*,")

BROADCAST = Rule(
    code="GI701",
    title="accidental broadcasting in a loss",
    summary="A loss compares every prediction with every target because their shapes broadcast.",
    explanation="A model returns [64, 1], the targets have shape [64], and [64, 1] - [64] is [64, 64]: torch adds "
    "missing dimensions in front. The mean over all pairs is an ordinary number that even decreases, but the model "
    "learns to predict the average. Intentional broadcasting is not reported: a dimension that is added on the "
    "spot, a mask of the broadcast shape, or two sides that are both learned.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(4, 1)
  x, y = torch.randn(64, 4), torch.randn(64)
- prediction = model(x)  # [64, 1]
+ prediction = model(x).squeeze(-1)  # [64]
  loss = ((prediction - y) ** 2).mean()  # y is [64]
  loss.backward()
""",
    remedy="Give both sides the same shape: model(x).squeeze(-1), or y.unsqueeze(-1).",
)


_OF_AN_ERROR = tuple(f"{name}Backward" for name in ("Abs", "Div", "Mul", "Neg", "Pow", "ToCopy"))
_TRANSPOSED = re.compile(r"\.m?T\b|\bt\(\)|transpose|permute|swapaxes|movedim")


def broadcast_findings(grown: GrownGraph) -> Iterator[Finding]:
    """Find the operators under a loss that broadcast by accident, with the line that reduces the result."""
    graph, operators, backward = grown
    wanted = {operator.sequence_nr for operator in operators}
    numbers = {node.identity: number for number, node in enumerate(graph.nodes) if node.identity in wanted}
    here = [operator for operator in operators if operator.sequence_nr in numbers]
    readers = consumers(graph) if here else {}
    pairs = {_shape_of(operator) for operator in here if all(operator.is_learned)}
    compared = {
        numbers[one.sequence_nr]: one.frame
        for one in here
        if is_square_against_side(one.op, one.shapes, one.is_learned)
    }
    for operator in here:
        number, shape = numbers[operator.sequence_nr], _shape_of(operator)
        if shape is not None and operator.op == "add":
            yield from _of_a_sum(grown, operator, shape, number, readers, compared)
            continue
        if shape is None or operator.is_learned[0] == operator.is_learned[1]:
            continue
        if _is_on_purpose(graph, graph.nodes[number], operator) or (_is_of_equal_length(operator) and shape in pairs):
            continue
        passes = _OF_AN_ERROR if _is_of_equal_length(operator) else _ELEMENTWISE
        reduction = _reduction(graph, readers, number, shape, passes)
        if reduction is not None:
            yield _finding(graph, operator, shape, reduction, backward, _made(graph, number, operator))


def _of_a_sum(
    grown: GrownGraph, operator: GrownOperator, shape: Shape, number: int, readers: Mapping[int, list[Consumer]],
    compared: Mapping[int, Frame | None],
) -> Iterator[Finding]:  # fmt: skip
    """Report two learned sides whose sum is a square, if that is compared with a given row."""
    graph = grown.graph
    if not all(operator.is_learned) or _is_on_purpose(graph, graph.nodes[number], operator):
        return
    passed, reduction = _followed(graph, readers, number, shape, _ELEMENTWISE)
    meets = next((one for one in passed if one in compared), None)
    if meets is None or reduction is None:
        return
    left, right = map(format_shape, operator.shapes)
    yield BROADCAST.finding(
        text=f"add of {left} and {right} broadcasts to {format_shape(shape)}, and {line_of(compared[meets])} compares "
        f"each row of that with the same {shape[-1]:,} targets.",
        places=(
            *place_of("broadcast", operator.frame), *place_of("compared", compared[meets]),
            *place_of("backward", grown.backward),
        ),
        remedy=f"Give both the same shape before {line_of(operator.frame)}: {_how(*operator.shapes)}.",
    )  # fmt: skip


JUDGE = Judge(GrownGraph, broadcast_findings)


def _shape_of(operator: GrownOperator) -> Shape | None:
    return slipped_shape(operator.op, operator.shapes, operator.is_learned)


def _is_of_equal_length(operator: GrownOperator) -> bool:
    return len(operator.shapes[0]) == len(operator.shapes[1])


def _is_on_purpose(graph: Graph, node: Node, operator: GrownOperator) -> bool:
    """Return whether a dimension was added on the same line, or in the same function right before."""
    frame, is_equal = operator.frame, _is_of_equal_length(operator)
    if frame is not None and (_ON_PURPOSE.search(frame.code) or (is_equal and _TRANSPOSED.search(frame.code))):
        return True
    for edge in node.next_edges:
        before = None if edge is None else graph.nodes[edge.next_node]
        if before is not None and before.leaf is not None and is_equal:
            return True
        if before is None or not before.name.startswith("Unsqueeze") or before.frame is None or frame is None:
            continue
        made = graph.frames[before.frame]
        if (made.file, made.function) == (frame.file, frame.function):
            return True
    return False


def _reduction(
    graph: Graph, readers: Mapping[int, list[Consumer]], start: int, shape: Shape, passes: tuple[str, ...]
) -> Node | None:
    """Return the node that reduces the grown elements to a scalar; None where they meet anything else."""
    return _followed(graph, readers, start, shape, passes)[1]


def _followed(
    graph: Graph, readers: Mapping[int, list[Consumer]], start: int, shape: Shape, passes: tuple[str, ...]
) -> tuple[list[int], Node | None]:
    """Follow the grown elements to the node that reduces them to a scalar; list those that they pass."""
    todo, seen = [start], {start}
    found = None
    for number in todo:
        node = graph.nodes[number]
        if number != start and _masks(node, shape):
            return todo, None
        if _num_elements(node) == 1:
            found = found or node
            continue
        for reader, _ in readers.get(number, ()):
            if reader not in seen and _goes_on(graph.nodes[reader], shape, passes):
                seen.add(reader)
                todo.append(reader)
    return todo, found


def _goes_on(node: Node, shape: Shape, passes: tuple[str, ...]) -> bool:
    elements = _num_elements(node)
    if elements == 1:
        return node.name.startswith(_REDUCTIONS) or "Loss" in node.name
    if node.name.startswith("WhereBackward"):  # a loss in two pieces; one piece alone is a mask
        return elements == prod(shape) and all(edge is not None for edge in node.next_edges)
    return elements == prod(shape) and node.name.startswith(passes)


def _masks(node: Node, shape: Shape) -> bool:
    """Return whether a node multiplies by constants of the grown shape."""
    if not node.name.startswith("MulBackward") or all(edge is not None for edge in node.next_edges):
        return False
    tensors = (value.tensor for value in node.saved if value.tensor is not None)
    return any(tensor.info.shape == shape and not tensor.strides for tensor in tensors)


def _num_elements(node: Node) -> int:
    info = node.forward_outputs[0] if node.forward_outputs else None
    sizes = () if info is None else info.shape
    return 0 if info is None else prod(size for size in sizes if isinstance(size, int))


def _made(graph: Graph, number: int, operator: GrownOperator) -> Frame | None:
    """Return the line that makes the longer side, if that is learned; None where that is the operator's own."""
    learned, given = operator.shapes if operator.is_learned[0] else operator.shapes[::-1]
    frame = operator.frame
    if frame is None or len(learned) <= len(given):
        return None
    while line_of(frame) == line_of(operator.frame):
        live = [edge.next_node for edge in graph.nodes[number].next_edges if edge is not None]
        node = graph.nodes[live[0]] if len(live) == 1 else None
        if (
            node is None
            or node.leaf is not None
            or not (output_shape(node) == learned or node.name.startswith("Expand"))
        ):
            return None
        number, frame = live[0], frame_of(graph, node)
    return frame


def _finding(
    graph: Graph, operator: GrownOperator, shape: Shape, reduction: Node, backward: Frame | None, made: Frame | None
) -> Finding:
    frame = frame_of(graph, reduction)
    learned, given = operator.shapes if operator.is_learned[0] else reversed(operator.shapes)
    forward = reduction.name.partition("Backward")[0]
    if shape in (given, learned):
        few, many = sorted((prod(given), prod(learned)))
        effect = f"{forward} compares each of {few:,} elements with {many // few:,}."
    else:
        effect = f"{forward} reduces all {prod(shape):,} pairs instead of {prod(learned):,} elements."
    return BROADCAST.finding(
        text=f"{operator.op} of {format_shape(learned)} (requires grad) and {format_shape(given)} (does not) "
        f"broadcasts to {format_shape(shape)}. {effect}",
        places=(
            *place_of("made", made), *place_of("broadcast", operator.frame), *place_of("reduced", frame),
            *place_of("backward", backward),
        ),
        remedy=_same_shape(operator, learned, given, made),
    )  # fmt: skip


def _same_shape(operator: GrownOperator, learned: Shape, given: Shape, made: Frame | None) -> str:
    """Advise where the learned side is made, if that is the longer one: other lines read it, too."""
    if made is not None:
        return f"At {line_of(made)}, {_how(learned, given)} that it makes, so that all who read it get the same shape."
    return f"Give both the same shape before {line_of(operator.frame)}: {_how(learned, given)}."


def _how(learned: Shape, given: Shape) -> str:
    if len(learned) != len(given):
        longer = max(learned, given, key=len)
        return f"call {_squeezed(longer, min(learned, given, key=len))} on the {format_shape(longer)}"
    if without_ones(learned) == without_ones(given):
        return f"call reshape{learned} on the {format_shape(given)}"
    wanted, other = format_shape(given), format_shape(learned)
    return f"let what is learned have the shape {wanted}, or select what belongs to the {other}"


def _squeezed(shape: Shape, wanted: Shape) -> str:
    """Write the call that gives one shape another one, by removing dimensions of length 1."""
    for place in reversed(range(len(shape))):
        if shape[:place] + shape[place + 1 :] == wanted and shape[place] == 1:
            return f"squeeze({place - len(shape)})"
    return f"reshape({', '.join(map(str, wanted))})"
