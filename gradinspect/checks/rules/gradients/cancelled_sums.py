"""Sums in which a tensor cancels: z + (q - z) is q, so no gradient comes back to z.

Reported only where a difference is added to something: (mean + noise) - mean occurs in the density of a sample, where
the mean is meant to cancel.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gradinspect.checks.facts.backward_calls import BackwardStarts
from gradinspect.checks.facts.dead_units import reached
from gradinspect.checks.findings import Finding, caller_in, line_of, listed, place_of
from gradinspect.checks.rule import Judge
from gradinspect.checks.rules.gradients.zero_gradients import ZERO
from gradinspect.graph import Consumer, Edge, Frame, Graph, Node, consumers, frame_of, nodes_named
from gradinspect.syntax import parse

SUMS = ("AddBackward0", "SubBackward0")
MAX_TERMS = 32  # of one sum, with the sums in it
MAX_SUMS = 4  # that contain a difference: the terms are counted in each


def cancelled_findings(starts: BackwardStarts) -> Iterator[Finding]:
    """Find the smallest sums to which a tensor with a graph is added as often as it is subtracted."""
    graph = starts.graph
    differences = nodes_named(graph, "SubBackward0")
    readers = consumers(graph) if differences else {}
    found: set[int] = set()
    for difference in differences:
        for number in _sums_of(graph, readers, difference):
            terms = _terms(graph, number)
            if number in found or any(not weight for weight in terms.values()):
                if number not in found:
                    found.add(number)
                    yield _finding(graph, number, terms, starts)
                break


JUDGE = Judge(BackwardStarts, cancelled_findings)


def _sums_of(graph: Graph, readers: Mapping[int, Sequence[Consumer]], difference: int) -> Iterator[int]:
    """Yield the first sum that reads a difference, the first that reads that, and so on."""
    number: int | None = difference
    for _ in range(MAX_SUMS):
        if number is None:
            return
        if graph.nodes[number].name == "AddBackward0":
            yield number
        number = next((one.node for one in readers.get(number, ()) if _is_plain_sum(graph.nodes[one.node])), None)


def _terms(graph: Graph, number: int) -> Counter[Edge]:
    """Count how often each tensor is added in a sum, less how often it is subtracted; nothing if it is too long."""
    weights: Counter[Edge] = Counter()
    todo = [(Edge(number, 0), 1)]
    for _ in range(MAX_TERMS):
        if not todo:
            return weights
        edge, sign = todo.pop()
        node = graph.nodes[edge.next_node]
        if not _is_plain_sum(node):
            weights[edge] += sign
            continue
        for place, term in enumerate(node.next_edges):
            if term is not None:
                todo.append((term, -sign if place and node.name == "SubBackward0" else sign))
    return Counter()


def _is_plain_sum(node: Node) -> bool:
    """Return whether a node adds or subtracts two tensors, neither multiplied by a number."""
    factors = [value.value for value in node.saved if value.name == "_saved_alpha"]
    return node.name in SUMS and all(factor in (1, None) for factor in factors)


def _finding(graph: Graph, number: int, terms: Counter[Edge], starts: BackwardStarts) -> Finding:
    frame = frame_of(graph, graph.nodes[number])
    sum_of = _written(frame) or Straight("A tensor", "z", "q")
    lost = [edge.next_node for edge, weight in terms.items() if not weight]
    behind = reached(graph, lost, avoided=None)
    leaves = [leaf.name for one in sorted(behind) if (leaf := graph.nodes[one].leaf) is not None and leaf.name]
    whose = f" {listed(leaves)} {'gets' if len(leaves) == 1 else 'get'} none on this path." if leaves else ""
    z, q = sum_of.name, sum_of.other
    loss = (
        f" What {q} is computed from then needs a loss of its own, as ({q} - {z}.detach()).square().mean()."
        if any(terms.values())
        else ""
    )
    return ZERO.finding(
        text=f"{sum_of.subject} is added and subtracted again, so it cancels: its gradient is zero, whatever the loss "
        f"is.{whose}",
        places=(
            *place_of("zeroed", frame, caller_in(graph, graph.nodes[number], starts.backward)),
            *place_of("backward", starts.backward),
        ),
        remedy=f"For a straight-through estimator, detach the difference at {line_of(frame)}: {z} + ({q} - {z})"
        f".detach().{loss} Otherwise use {q} alone.",
        subjects=leaves,
    )  # fmt: skip


class Straight(NamedTuple):
    """A sum z + (q - z)."""

    subject: str
    name: str  # z
    other: str  # q


def _written(frame: Frame | None) -> Straight | None:
    """Read the sum in a line; None if the line has none like it."""
    try:
        tree = parse("" if frame is None else frame.code)
    except (SyntaxError, ValueError):
        return None
    for part in ast.walk(tree):
        match part:
            case (
                ast.BinOp(left=first, op=ast.Add(), right=ast.BinOp(left=other, op=ast.Sub(), right=again))
                | ast.BinOp(left=ast.BinOp(left=other, op=ast.Sub(), right=again), op=ast.Add(), right=first)
            ) if ast.unparse(first) == ast.unparse(again):
                return Straight(ast.unparse(first), ast.unparse(first), ast.unparse(other))
    return None
