"""Gradients that are zero, or all but zero, before they reach their parameters: rounding, clamping, saturation."""

from collections.abc import Collection, Iterator

from gradinspect.analyses.gradients.observed import GradientNote, gradients_of, norm_of_all, parameter_rows
from gradinspect.checks.facts.backward_calls import BackwardEnded
from gradinspect.checks.facts.dead_units import ZEROED, only_behind, reached
from gradinspect.checks.findings import Finding
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.gradients.gradient_causes import (
    Cause,
    CulpritWords,
    cause_in,
    culprit_finding,
    operator_of,
)
from gradinspect.checks.rules.gradients.zero_causes import dead_unit_cause, length_one_cause
from gradinspect.checks.rules.gradients.zero_weights import stuck_weights
from gradinspect.graph import Graph, Node, consumers, leaf_name, nodes_named

ZERO = Rule(
    code="GI601",
    needs_values=True,
    title="gradient is zero before it reaches its parameters",
    summary="A node received a gradient and returned only zeros, so the parameters behind it do not learn.",
    explanation="The parameters get a gradient of exactly zero, and there is no error. Rounding has a zero "
    "derivative everywhere, clamp outside its bounds, ReLU where its input is negative. A softmax, sigmoid or tanh "
    "that returns less than a millionth of the gradient counts as well: the outputs of a softmax always add up "
    "to 1, so their plain sum has no gradient.",
    change="""\
  import torch
  from torch import nn

  encoder, decoder = nn.Linear(4, 8), nn.Linear(8, 4)
- code = encoder(torch.randn(16, 4)).round()  # its derivative is 0
+ z = encoder(torch.randn(16, 4))
+ code = z + (z.round() - z).detach()
  loss = decoder(code).square().mean()
- loss.backward()  # encoder.weight.grad is all zeros
+ loss.backward()
""",
    remedy="Use a straight-through estimator for rounding, z + (z.round() - z).detach(), or rescale the input.",
    must_repeat=1,  # the few values of a small layer may all be negative once, by chance
)
_HINGES = ("Relu", "Threshold", "ClampMin")
_DIFFERENCES = ("Sub", "Rsub", "Add")  # a margin and what is to keep it
_SUMS = ("Add", "Sub", "Neg", "Mul", "Div", "Sum", "Mean")  # of the terms of a loss
PRODUCTS = ("Mm", "Addmm", "Bmm", "Linear")
ROUNDING = {"Round": "round", "Floor": "floor", "Ceil": "ceil", "Trunc": "trunc", "Sign": "sign", "Sgn": "sgn"}
CAUSES = (
    Cause(("Clamp", "ClampMin", "ClampMax", "Hardtanh", "Hardsigmoid"),
          "Every element is outside the bounds, where the derivative is zero.",
          "Scale its input into the bounds, or clamp where no gradient is needed."),
    Cause(("Relu", "Threshold"), "Every element is negative: the unit is dead.",
          "Use leaky_relu, which passes a gradient there, too, or a smaller learning rate if a step "
          "made it so."),
    Cause(("Softmax",), "Its outputs add up to 1, so a loss that weights them equally, as a sum does, is constant; "
          "where one output is close to 1, it saturates.",
          "Compare with a target instead, by a loss that takes the input of the softmax, such as cross_entropy."),
    Cause(("Sigmoid", "Tanh", "Erf"), "Its input is far from 0, where it saturates.",
          "Scale its input down, or normalize it."),
    Cause(("BackwardHookFunction",), "A full backward hook of this module returned them.",
          "Let the hook of the module return None, which keeps the gradient, or the gradient that you want."),
    Cause(("Normal",), "A sample that torch.normal() draws has no derivative with respect to its mean and deviation.",
          "Write mean + std * torch.randn_like(std)."),
    Cause(("Bernoulli",), "A sample that torch.bernoulli() draws has no derivative with respect to its probability.",
          "Use a straight-through estimator: p + (torch.bernoulli(p) - p).detach()."),
    Cause(("Mul",), "The other factor is zero everywhere, as a mask may be.",
          "Which factor is that, and is it meant to be zero?"),
)  # fmt: skip


def zero_cause(ended: BackwardEnded, number: int) -> Cause | None:
    """Return why a node returns no gradient, and what helps."""
    node = ended.graph.nodes[number]
    operator = operator_of(node)
    if _cancels(node):
        return Cause(
            (operator,),
            "Both of its inputs are the same tensor, so what one receives takes away what the other does.",
            "Detach() the side that is to stay as it was, such as the log-probability of the old policy.",
        )
    name = ROUNDING.get(operator)
    if name is not None:
        return Cause(
            (operator,),
            "Its derivative is zero everywhere.",
            f"Use a straight-through estimator: x + (x.{name}() - x).detach().",
        )
    if operator == "Div" and any(value.name == "_saved_rounding_mode" and value.value for value in node.saved):
        return Cause(
            (operator,),
            "The derivative of a division that rounds is zero everywhere.",
            "Use a straight-through estimator: q + (q.round() - q).detach() of the plain quotient q, with the rounding "
            "that is needed.",
        )
    if operator in PRODUCTS:
        return _zero_factor(ended.graph, node)
    dead = dead_unit_cause(ended, number) if operator in ("Relu", "Threshold") else None
    return dead or length_one_cause(ended.graph, number) or cause_in(CAUSES, node)


def _zero_factor(graph: Graph, node: Node) -> Cause | None:
    """Name the parameter that a matrix product multiplies by, where that must be zero everywhere."""
    known = {one.origin_name for one in node.saved if one.origin == "parameter" and one.origin_name}
    names = list(known - {one.leaf.name for one in graph.nodes if one.leaf is not None})
    if len(names) != 1:
        return None
    return Cause(
        (operator_of(node),),
        f"It multiplies by {names[0]}, which is zero everywhere and does not require grad, so it stays zero.",
        f"Let {names[0]} learn as well: set its requires_grad before the optimizer is made.",
    )


NEXT_TO_NOTHING = 1e-6  # of the norm that came; the rounding error of float32 is a tenth of that
# log_softmax is not among them: in cross entropy a small gradient is a good prediction
SQUASHING = ("SoftmaxBackward", "SigmoidBackward", "TanhBackward", "ErfBackward")


def zero_findings(ended: BackwardEnded) -> Iterator[Finding]:
    """Find nodes that returned zeros, or next to nothing, and the parameters that get no other gradient."""
    stuck = frozenset[str]()
    if any(note.kind == "killed" for note in ended.notes):
        stuck = frozenset(stuck_weights(ended.graph))
    for note in ended.notes:
        if note.kind != "killed" or note.node is None or _is_kept_margin(ended.graph, note.node):
            continue
        if note.parameters and not _is_explained(ended.graph, note.parameters, stuck):
            yield _finding(ended, note, "received a gradient and returned only zeros")
    for note in _cancelled(ended.graph):
        yield _finding(ended, note, "received a gradient and passed on its opposite as well")
    for note in shrunk_gradients(ended.graph):
        yield _finding(ended, note, note.text)


JUDGE = Judge(BackwardEnded, zero_findings)


def _is_kept_margin(graph: Graph, number: int) -> bool:
    """Return whether a node is a term of the loss that is zero where a margin is kept: relu(margin - distance)."""
    node = graph.nodes[number]
    before = node.next_edges[0] if node.next_edges else None
    if operator_of(node) not in _HINGES or before is None:
        return False
    if operator_of(graph.nodes[before.next_node]) not in _DIFFERENCES:
        return False
    readers = consumers(graph)
    todo = [number]
    for one in todo:
        above = [reader for reader, _ in readers.get(one, ())]
        if any(operator_of(graph.nodes[reader]) not in _SUMS for reader in above):
            return False
        todo += above
    return True


def _is_explained(graph: Graph, names: Collection[str], stuck: Collection[str]) -> bool:
    """Return whether weights that are all zeros are among parameters, beside nothing but biases."""
    others = set(names) - set(stuck)
    vectors = {node.leaf.name for node in graph.nodes if node.leaf is not None and len(node.leaf.info.shape) < 2}
    return len(others) < len(set(names)) and others <= vectors


def _finding(ended: BackwardEnded, note: GradientNote, returned: str) -> Finding:
    words = CulpritWords(
        rule=ZERO,
        role=ZEROED,
        cause_of=lambda _node: zero_cause(ended, note.node or 0),
        effect="No gradient reaches {names}",
        does="lets none through",
        alone="lets no gradient through",
        command="break zero",
    )
    return culprit_finding(words, returned, ended.graph, note, ended.backward)


def _cancels(node: Node) -> bool:
    """Return whether a node computes the difference or the ratio of a tensor with itself."""
    edges = node.next_edges
    is_of_two = node.name in ("SubBackward0", "DivBackward0") and len(edges) > 1
    return is_of_two and edges[0] is not None and edges[0] == edges[1]


def _cancelled(graph: Graph) -> Iterator[GradientNote]:
    """Find such nodes, and the parameters that get no other gradient."""
    cancelling = [
        number for number in nodes_named(graph, ("SubBackward0", "DivBackward0")) if _cancels(graph.nodes[number])
    ]
    zero = (
        {row.node: row.name for row in parameter_rows(graph) if row.stats is not None and row.stats.norm == 0}
        if cancelling
        else {}
    )
    for number in cancelling:
        behind = reached(graph, [number], avoided=None)
        names = tuple(name for node, name in zero.items() if node in behind)
        if names:
            yield GradientNote(kind="killed", text="", node=number, parameters=names)


def shrunk_gradients(graph: Graph) -> Iterator[GradientNote]:
    """Find saturating nodes that return almost nothing, with the parameters that get a gradient from nowhere else.

    The text of each is what it received and what it returned.
    """
    squashing = set(nodes_named(graph, SQUASHING))
    for ran in gradients_of(graph).nodes if squashing else ():
        if ran.node not in squashing:
            continue
        came, went = norm_of_all(ran.incoming), norm_of_all(ran.outgoing)
        if came is None or went is None or not 0 < went < NEXT_TO_NOTHING * came:
            continue
        parameters = tuple(leaf_name(graph, number) for number in only_behind(graph, ran.node))
        if parameters:
            text = f"received a gradient of norm {came:.1e} and returned one of {went:.1e}"
            yield GradientNote(kind="killed", text=text, node=ran.node, parameters=parameters)
