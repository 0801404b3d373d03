"""Similarities of vectors that were normalized along another axis than the products sum over."""

from collections.abc import Iterator
from typing import NamedTuple

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.losses.loss_graph import (
    axis_from_front,
    has_same_values,
    output_shape,
    saved_as,
)
from gradinspect.graph import Graph, Node, frame_of, nodes_named
from gradinspect.units import format_shape

_TURNS = ("TBackward", "TransposeBackward", "PermuteBackward", "NumpyTBackward")
_KEEPS = ("CatBackward", "SplitBackward", "MulBackward")  # pieces, and multiples, of vectors of one length
_TO_NORM = ("ExpandBackward", "ClampMinBackward", "ClampBackward", "AddBackward", "UnsqueezeBackward", "SqrtBackward")
_NORMS = ("LinalgVectorNormBackward", "SumBackward1")
_LONGEST = 12  # nodes between a product and what its vectors were divided by

AXES = Rule(
    code="GI703",
    title="vectors are normalized along the wrong axis",
    summary="Both factors of a product have length 1 along one axis, and the product sums over the other.",
    explanation="F.normalize(z, dim=0) divides each column by its length over the batch: the vectors of the examples "
    "keep lengths of their own, and z @ z.t() has no cosines but products that depend on who else is in the batch. The "
    "axis to normalize is the one that the product sums over. Both factors have to show it: with z.t() @ z, which sums "
    "over the batch, dim=0 is right.",
    change="""\
  import torch
  from torch import nn
  from torch.nn import functional as F

  encoder = nn.Linear(8, 4)
  first, second = encoder(torch.randn(6, 8)), encoder(torch.randn(6, 8))
- first, second = F.normalize(first, dim=0), F.normalize(second, dim=0)
+ first, second = F.normalize(first, dim=1), F.normalize(second, dim=1)
  F.cross_entropy(first @ second.t() / 0.1, torch.arange(6)).backward()
""",
    remedy="Normalize along the axis that the product sums over: F.normalize(z, dim=1) before z @ z.t().",
)


class _Units(NamedTuple):
    """What has length 1 along an axis, as a product is given it."""

    axis: int
    along: int  # the same axis, of what was divided
    node: Node  # the division


def axes_findings(starts: BackwardStarts) -> Iterator[Finding]:
    """Look at each product of two matrices."""
    graph, seen = starts.graph, set()
    for number in nodes_named(graph, ("MmBackward", "SumBackward1")):
        product = graph.nodes[number]
        factors = _factors(graph, product)
        if factors is None or product.frame in seen:
            continue
        units = [_units(graph, one) for one, _ in factors]
        if all(one is not None and one.axis != axis for one, (_, axis) in zip(units, factors, strict=True)):
            seen.add(product.frame)
            yield _finding(starts, product, [one for one in units if one is not None])


JUDGE = Judge(BackwardStarts, axes_findings)


def _factors(graph: Graph, product: Node) -> list[tuple[Node, int]] | None:
    """Return both factors of a product, each with the axis that is summed over; None if this is not one of matrices."""
    if product.name.startswith("MmBackward"):
        inputs, axes = _inputs(graph, product), (1, 0)
    else:
        multiplied = _inputs(graph, product)[:1]
        if not multiplied or multiplied[0] is None or not multiplied[0].name.startswith("MulBackward"):
            return None
        axis = _axis(product, multiplied[0])
        if axis is None:
            return None
        inputs, axes = _inputs(graph, multiplied[0]), (axis, axis)
        if any(one is not None and output_shape(one) != output_shape(multiplied[0]) for one in inputs):
            return None
    found = [(one, axis) for one, axis in zip(inputs, axes, strict=False) if one is not None]
    return found if len(found) == 2 and all(len(output_shape(one)) == 2 for one, _ in found) else None


def _units(graph: Graph, node: Node) -> _Units | None:
    """Find the division that gave the vectors of a matrix their length, and along which axis of the matrix."""
    is_turned = False
    for _ in range(_LONGEST):
        if len(output_shape(node)) != 2:
            return None
        inputs = _inputs(graph, node)
        axis = _divided_along(graph, node, inputs)
        if axis is not None:
            return _Units(1 - axis if is_turned else axis, axis, node)
        is_scaled = node.name.startswith("DivBackward") and inputs[1:] == [None]
        if node.name.startswith(_TURNS):
            is_turned = not is_turned
        elif not (is_scaled or has_same_values(node) or node.name.startswith(_KEEPS)):
            return None
        following = next((one for one in inputs if one is not None), None)
        if following is None:
            return None
        node = following
    return None


def _divided_along(graph: Graph, node: Node, inputs: list[Node | None]) -> int | None:
    """Return along which axis a division makes vectors of length 1; None if it does not."""
    divisor = inputs[1] if node.name.startswith("DivBackward") and len(inputs) > 1 else None
    for _ in range(_LONGEST):
        if divisor is None:
            return None
        if divisor.name.startswith(_NORMS):
            made_of = _inputs(graph, divisor)[0]
            return None if made_of is None else _axis(divisor, made_of)
        if not divisor.name.startswith(_TO_NORM):
            return None
        divisor = next(iter(_inputs(graph, divisor)), None)
    return None


def _axis(node: Node, of: Node) -> int | None:
    """Return the one axis of a matrix that a reduction goes along, counted from the front."""
    value = saved_as(node, "_saved_dim")
    if not isinstance(value, tuple) or len(value) != 1 or not isinstance(value[0], int) or len(output_shape(of)) != 2:
        return None
    return axis_from_front(value[0], 2)


def _inputs(graph: Graph, node: Node) -> list[Node | None]:
    return [None if edge is None else graph.nodes[edge.next_node] for edge in node.next_edges]


def _finding(starts: BackwardStarts, product: Node, units: list[_Units]) -> Finding:
    multiplied = frame_of(starts.graph, product)
    frames = list(dict.fromkeys(frame_of(starts.graph, one.node) for one in units))
    along = units[0].along
    lines = listed([line_of(frame) for frame in frames])
    return AXES.finding(
        text=f"At {lines}, {format_shape(output_shape(units[0].node))} is divided by its norm along axis {along}, "
        f"and the product at {line_of(multiplied)} sums over axis {1 - along} of it: the vectors that are "
        "multiplied have lengths of their own, and the results are no cosines.",
        places=(
            *(place for frame in frames for place in place_of("divided", frame)),
            *place_of("product", multiplied),
            *place_of("backward", starts.backward),
        ),
        remedy=f"At {lines}, normalize along axis {1 - along}, as by dim={1 - along}: the product sums over it.",
    )
