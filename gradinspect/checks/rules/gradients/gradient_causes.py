"""Why nodes of some classes return no gradient or one that is not finite, and what helps."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from gradinspect.analyses.gradients.observed import GradientNote
from gradinspect.checks.findings import Finding, Place, caller_in, line_of, line_that_names, listed, place_of
from gradinspect.checks.rule import Rule
from gradinspect.graph import Frame, Graph, Node, frame_of

_INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Cause(NamedTuple):
    """Why nodes of some classes return such gradients, and the remedy."""

    classes: tuple[str, ...]  # "Sqrt", of SqrtBackward0
    why: str
    remedy: str
    places: tuple[Place, ...] = ()  # the lines that it names besides that of the node
    where: Frame | None = None  # the line to change, if it is another one


class CulpritWords(NamedTuple):
    """How a rule speaks of the node that is to blame."""

    rule: Rule
    role: str  # of its line
    cause_of: Callable[[Node], Cause | None]
    effect: str  # "No gradient reaches {names}"
    does: str  # what the line of the node does, behind that: "lets none through"
    alone: str  # the same of a node behind which there is no parameter: "lets no gradient through"
    command: str  # of `gradinspect step` that stops there
    adds: str = ""  # to why it does so


def culprit_finding(
    words: CulpritWords, returned: str, graph: Graph, note: GradientNote, backward: Frame | None
) -> Finding:
    """Make a finding of one node.

    Args:
        words: Those of the rule.
        returned: What the node received and returned.
        graph: The graph.
        note: Which node, and which parameters it concerns.
        backward: The line of the call.
    """
    node = graph.nodes[note.node or 0]
    frame, called = line_that_names(frame_of(graph, node), caller_in(graph, node, backward))
    cause = words.cause_of(node)
    operator = written_operator(node) if frame is None else f"{written_operator(node)} at {line_of(frame)}"
    said = f"{operator} {words.alone}"
    if note.parameters:
        said = f"{words.effect.format(names=listed(note.parameters))}: {operator} {words.does}"
    why = "The cause is unknown." if cause is None else cause.why
    look = f"Which values go in there? See them in gradinspect step, with '{words.command}'."
    return words.rule.finding(
        text=f"{said}. {why}{words.adds} ({node.name} {returned}.)",
        places=(
            *place_of(words.role, frame, called),
            *(() if cause is None else cause.places),
            *place_of("backward", backward),
        ),
        remedy=look if cause is None else at_line(cause.where or frame, cause.remedy),
        subjects=note.parameters,
    )


def cause_in(causes: Sequence[Cause], node: Node) -> Cause | None:
    """Look up a node's class; None if it is not known."""
    return next((cause for cause in causes if operator_of(node) in cause.classes), None)


def operator_of(node: Node) -> str:
    """Name the operator of a node as its class does: `Sqrt` of SqrtBackward0."""
    return node.name.partition("Backward")[0] or node.name.removesuffix("Backward")  # as of BackwardHookFunction


def written_operator(node: Node) -> str:
    """Name the operator of a node as a program writes it: `log_softmax` of LogSoftmaxBackward0."""
    operator = operator_of(node)
    return _INNER_CAPITAL.sub("_", operator).lower() if node.name[-1:].isdigit() else operator


def at_line(frame: Frame | None, remedy: str) -> str:
    """Say where to apply a remedy."""
    return remedy if frame is None else f"At {line_of(frame)}, {remedy[0].lower()}{remedy[1:]}"
