"""Gradients that vanish along a row of activation functions.

NOTE [Rows of activations]
What each activation function receives and returns was measured. Of all paths from the loss to a node the one with the
fewest activations counts, so a block that a connection skips is not a row, and neither are the steps of a recurrent
network, whose weights the last step reads too. The gradient that enters at the near end is compared with the one that
leaves at the far end, so the scale of the loss does not matter. The updates of SGD shrink with the gradient. Other
optimizers rescale it, until it is in the range of rounding errors.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gradinspect.analyses.gradients.observed import arriving_norm, gradients_of, norm_of_all
from gradinspect.checks.facts.backward_calls import BackwardEnded
from gradinspect.checks.facts.dead_units import all_only_behind
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.gradients.gradient_causes import written_operator
from gradinspect.graph import Frame, Graph, NodeGradients, frame_of, leaf_name, nodes_named
from gradinspect.units import format_count

LEAST_ROW = 3  # activations, one behind the other
LEAST_CALLS = 3
LEFT_BY_SGD = 1e-4  # of the gradient: a thousand steps then move a weight less than one step moves the last layer
LEFT_BY_OTHERS = 1e-7  # the rounding error of float32
ACTIVATIONS = (
    "SigmoidBackward", "TanhBackward", "ReluBackward", "LeakyReluBackward", "GeluBackward", "SiluBackward",
    "EluBackward", "SoftplusBackward",
)  # fmt: skip

VANISHING = Rule(
    code="GI605",
    needs_values=True,
    title="gradient vanishes before the first layers",
    summary="Each of several activation functions passes on less than it gets, and the first layers learn nothing.",
    explanation="The derivative of a sigmoid is at most 1/4, and that of tanh is small for large inputs; weights that "
    "are initialized with small values make gradients smaller as well. Where that happens in one layer after the "
    "other, the factors multiply. There is no error, and the loss stays where it is. Reported if the gradient that "
    "leaves the last of at least three activation functions in a row is at most a ten-thousandth of what the first "
    "one gets, in every observed backward call, and the parameters behind have torch.optim.SGD, which moves them as "
    "much less; with another optimizer at most a ten-millionth. A connection that skips layers ends a row.",
    change="""\
  import torch
  from torch import nn

- layers = [nn.Linear(4, 16), nn.Sigmoid()]
+ layers = [nn.Linear(4, 16), nn.BatchNorm1d(16), nn.Sigmoid()]
  for _ in range(7):
-     layers += [nn.Linear(16, 16), nn.Sigmoid()]
+     layers += [nn.Linear(16, 16), nn.BatchNorm1d(16), nn.Sigmoid()]
  model = nn.Sequential(*layers, nn.Linear(16, 1))
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  x = torch.randn(32, 4)
  for _ in range(4):
      loss = (model(x) - x[:, :1]).square().mean()
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
""",
    remedy="Put a BatchNorm before each activation function, or use relu with weights that are initialized for it.",
    must_repeat=LEAST_CALLS,
)


class ActivationRow(NamedTuple):
    """The activations between the loss and one of them, which is the last."""

    last: int  # the node
    num_activations: int
    came: float  # the norm of the gradient at the first
    went: float


class _Way(NamedTuple):
    """What is known about the paths from the loss to a node, before and after it."""

    num_activations: int
    came: float | None  # at the first activation, the least of all paths


def vanishing_findings(ended: BackwardEnded) -> Iterator[Finding]:
    """Report the end of a row behind which parameters get almost no gradient."""
    graph = ended.graph
    activations = frozenset(nodes_named(graph, ACTIVATIONS))
    without_leaf: set[int] = set()  # nodes behind which there is none of their own; of a long recurrence, nearly all
    for row in _rows(graph, activations) if len(activations) >= LEAST_ROW else ():
        if row.last in without_leaf:
            continue
        behind = all_only_behind(graph, row.last)
        leaves = sorted(number for number in behind if graph.nodes[number].leaf is not None)
        if not leaves:
            without_leaf |= behind
            continue
        share = row.went / row.came
        is_sgd = all(ended.method_of(number) == "SGD" for number in leaves)
        if share <= (LEFT_BY_SGD if is_sgd else LEFT_BY_OTHERS):
            yield _finding(ended, row, leaves, is_sgd=is_sgd)
            return


JUDGE = Judge(BackwardEnded, vanishing_findings)


def _rows(graph: Graph, activations: frozenset[int]) -> Iterator[ActivationRow]:
    """Yield the ends of rows that leave too little for SGD, the nearest first."""
    ran = {one.node: one for one in gradients_of(graph).nodes}
    ways: dict[int, _Way] = {root.node: _Way(0, None) for root in graph.roots}
    for number, node in enumerate(graph.nodes):  # in topological order
        way = ways.get(number)
        if way is None:
            continue
        if number in activations:
            way = _through(way, ran.get(number))
            went = _returned(ran, number)
            if way.num_activations >= LEAST_ROW and way.came and went and went <= LEFT_BY_SGD * way.came:
                yield ActivationRow(number, way.num_activations, way.came, went)
        for edge in node.next_edges:
            if edge is not None:
                ways[edge.next_node] = _nearest(ways.get(edge.next_node), way)


def _through(way: _Way, ran: NodeGradients | None) -> _Way:
    """Extend a path by an activation."""
    came = way.came if way.num_activations or ran is None else arriving_norm(ran)
    return _Way(way.num_activations + 1, came)


def _returned(ran: Mapping[int, NodeGradients], number: int) -> float | None:
    return norm_of_all(ran[number].outgoing) if number in ran else None


def _nearest(known: _Way | None, other: _Way) -> _Way:
    """Merge two paths to a node: keep the fewest activations, and the smallest gradient."""
    if known is None:
        return other
    came = None if known.came is None or other.came is None else min(known.came, other.came)
    return _Way(min(known.num_activations, other.num_activations), came)


def _finding(ended: BackwardEnded, row: ActivationRow, leaves: list[int], *, is_sgd: bool) -> Finding:
    graph = ended.graph
    subjects = tuple(leaf_name(graph, number) for number in leaves)
    node = graph.nodes[row.last]
    made = ended.made_at(leaves[0])
    each = (row.went / row.came) ** (1 / row.num_activations)
    text = (
        f"Between the loss and {listed(subjects)} are {format_count(row.num_activations, 'activation function')} one "
        f"behind the other: {_kinds(graph)}. The first gets a gradient of norm {row.came:.1e} and the last returns one "
        f"of {row.went:.1e}, so each layer passes on {each:.2g} of it. "
    )
    effect = "SGD moves these parameters in proportion" if is_sgd else "That is as little as rounding errors"
    return VANISHING.finding(
        text=f"{text}{effect}, so they hardly learn.",
        places=(*place_of("layer", made), *place_of("function", frame_of(graph, node)),
                *place_of("backward", ended.backward)),
        remedy=_remedy(written_operator(node), made),
        subjects=subjects,
    )  # fmt: skip


def _kinds(graph: Graph) -> str:
    """Name the functions, as a program writes them."""
    return listed(sorted({written_operator(graph.nodes[one]) for one in nodes_named(graph, ACTIVATIONS)}))


def _remedy(operator: str, made: Frame | None) -> str:
    at = "" if made is None else f" at {line_of(made)}"
    if operator == "sigmoid":
        return f"Put a BatchNorm before each sigmoid, or use relu with nn.init.kaiming_normal_(weight){at}."
    init = "xavier_normal_(weight, gain=5 / 3)" if operator == "tanh" else "kaiming_normal_(weight)"
    return f"Use nn.init.{init}{at}, or put a BatchNorm before each {operator}."
