"""Consecutive linear layers without an activation function, which together are one linear layer.

NOTE [Linear on purpose]
A row with a layer narrower than both of its ends is a matrix of low rank: a linear autoencoder, a factorization, LoRA.
Part of a model may lack activation functions for many reasons, so a model is reported only if all of its parameters are
in the row: then its output is a linear function of its data. Two layers are often a demonstration.
"""

from collections.abc import Iterator
from typing import NamedTuple

from gradinspect.checks.facts.backward_calls import BackwardEnded
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.losses.loss_graph import maker, readers_of
from gradinspect.graph import Edge, Graph, Node, frame_of, leaf_name, nodes_named

LEAST_LAYERS = 3
LEAST_CALLS = 3
_INPUTS = {"AddmmBackward": 1, "MmBackward": 0, "LinearBackward": 0}  # where their data comes in

LINEAR = Rule(
    code="GI606",
    needs_values=True,
    title="the model is one linear function",
    summary="Several linear layers follow each other without an activation function, and nothing else does.",
    explanation="A linear function of a linear function is linear: three nn.Linear one behind the other can learn what "
    "one can, and no more. There is no error; the loss falls as far as a linear model brings it. Reported if all "
    "parameters of a loss belong to at least three linear layers in a row, from the data to the loss, in every "
    "observed backward call. A layer that is narrower than what comes in and what comes out lowers the rank, which "
    "may be meant, as in a linear autoencoder.",
    change="""\
  import torch
  from torch import nn

  first, second, third = nn.Linear(2, 8), nn.Linear(8, 8), nn.Linear(8, 1)
- model = nn.Sequential(first, second, third)
+ model = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), third)
  optimizer = torch.optim.Adam(model.parameters())
  x = torch.randn(32, 2)
  for _ in range(4):
      loss = (model(x) - x.prod(1, keepdim=True)).square().mean()
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
""",
    remedy="Put an activation function, such as relu, behind each linear layer but the last.",
    must_repeat=LEAST_CALLS,
)


class LinearLayer(NamedTuple):
    """A linear layer in a graph."""

    number: int  # the node
    weight: int  # the leaf
    bias: int | None
    sizes: tuple[int, int]  # what comes in and what goes out


def linear_findings(ended: BackwardEnded) -> Iterator[Finding]:
    """Report a model that is a row of linear layers. NOTE [Linear on purpose]."""
    graph = ended.graph
    row = linear_row(graph)
    if len(row) < LEAST_LAYERS or _lowers_rank(row):
        return
    first, last = row[-1], row[0]
    names = [leaf_name(graph, one.weight) for one in reversed(row)]
    made = ended.made_at(first.weight)
    widths = (*(str(one.sizes[0]) for one in reversed(row)), str(last.sizes[1]))
    yield LINEAR.finding(
        text=f"{len(row)} linear layers follow each other without an activation function ({' -> '.join(widths)}), and "
        f"the model has no other parameters than theirs. Together they are one linear function: {listed(names)} can "
        "learn no more than a single layer.",
        places=(*place_of("layer", made), *place_of("used", frame_of(graph, graph.nodes[first.number])),
                *place_of("backward", ended.backward)),
        remedy="Put an activation function, such as relu, behind each layer but the last"
        f"{'' if made is None else f': the first is made at {line_of(made)}'}.",
        subjects=names,
    )  # fmt: skip


JUDGE = Judge(BackwardEnded, linear_findings)


def linear_row(graph: Graph) -> list[LinearLayer]:
    """List the layers of a row that has all leaves of a graph, from the loss to the data; nothing if there is none."""
    leaves = {number for number, node in enumerate(graph.nodes) if node.leaf is not None}
    layers = {number: layer for number in nodes_named(graph, tuple(_INPUTS)) if (layer := _layer(graph, number))}
    if (
        len(layers) < LEAST_LAYERS
        or {one for each in layers.values() for one in (each.weight, each.bias)} - {None} != leaves
    ):
        return []
    readers = readers_of(graph)
    row = [layers[min(layers)]]  # a reader has a smaller number
    while (edge := _input(graph.nodes[row[-1].number])) is not None:
        before = maker(graph, edge.next_node)
        if before is None or before.number not in layers or readers[before.number] != [row[-1].number]:
            return []
        row.append(layers[before.number])
    return row if len(row) == len(layers) else []


def _layer(graph: Graph, number: int) -> LinearLayer | None:
    """Return a layer, if a node multiplies by a weight that is a leaf."""
    edges = graph.nodes[number].next_edges
    place = _input_place(graph.nodes[number])
    weight = _leaf(graph, edges[place + 1]) if place + 1 < len(edges) else None
    others = [_leaf(graph, edge) for at, edge in enumerate(edges) if at not in {place, place + 1} and edge is not None]
    if weight is None or None in others or len(others) > 1:
        return None
    leaf = graph.nodes[weight].leaf
    match () if leaf is None else leaf.info.shape:
        case (int(after), int(before)):
            return LinearLayer(number, weight, others[0] if others else None, (before, after))
    return None


def _input_place(node: Node) -> int:
    return _INPUTS[node.name.rstrip("0123456789")]


def _input(node: Node) -> Edge | None:
    return node.next_edges[_input_place(node)]


def _leaf(graph: Graph, edge: Edge | None) -> int | None:
    """Return the leaf that an edge leads to, perhaps transposed."""
    found = None if edge is None else maker(graph, edge.next_node)
    return None if found is None or found.node.leaf is None else found.number


def _lowers_rank(row: list[LinearLayer]) -> bool:
    """Return whether a layer is narrower than both ends."""
    ends = min(row[-1].sizes[0], row[0].sizes[1])
    return min(one.sizes[0] for one in row) < ends
