"""What went wrong with the gradients of a watched backward, as findings with a line and a remedy."""

from collections.abc import Iterator
from typing import NamedTuple

from gradinspect.analyses.findings import Finding, line_of, listed, place_of
from gradinspect.analyses.gradients import Finding as Trouble
from gradinspect.analyses.gradients import findings
from gradinspect.graph import Frame, Graph, Record


class _Cause(NamedTuple):
    """Why nodes of some classes do what they do, and what helps."""

    classes: tuple[str, ...]  # beginnings of their names
    why: str
    remedy: str


NONFINITE = (
    _Cause(("Sqrt", "Rsqrt"), "The derivative of a root is infinite at 0.",
           "Add a little inside the root: sqrt(x + 1e-8)."),
    _Cause(("Log",), "The derivative of a logarithm is infinite at 0.",
           "Keep its input away from 0: x.clamp(min=1e-8)."),
    _Cause(("Div", "Reciprocal"), "Dividing by 0 has no finite derivative.", "Keep the divisor away from 0."),
    _Cause(("Pow",), "A power below 1 has an infinite derivative at 0.", "Keep its input away from 0."),
    _Cause(("LinalgVectorNorm", "Norm"), "A norm has no derivative at 0.",
           "Compute (x * x).sum().add(1e-8).sqrt() instead."),
    _Cause(("Acos", "Asin", "Atanh"), "The derivative is infinite at -1 and 1.", "Clamp its input between them."),
)  # fmt: skip
KILLED = (
    _Cause(("Round", "Floor", "Ceil", "Trunc", "Sign", "Heaviside"), "Its derivative is zero everywhere.",
           "Pass the gradient straight through: x + (x.round() - x).detach()."),
    _Cause(("Clamp", "Hardtanh", "Hardsigmoid"), "Every element lies outside the bounds, where it is flat.",
           "Scale its input into the bounds, or clamp where no gradient is wanted."),
    _Cause(("Relu", "Threshold"), "Every element is negative: the unit is dead.",
           "Look at the bias and the learning rate, or use leaky_relu or gelu."),
    _Cause(("Mul",), "The other factor is zero everywhere, as a mask may be.", "Look at that factor."),
)  # fmt: skip


class NonfiniteValue(Record, frozen=True, kw_only=True):
    """The earliest value of the forward pass, among those that were kept, that is not finite."""

    node: int | None  # that made it; None: it came from outside the graph
    label: str


def gradient_findings(graph: Graph, backward: Frame | None, *, was_finite: bool = True) -> Iterator[Finding]:
    """Find where gradients stopped being finite, unless the loss was not, and where they died on the way."""
    for trouble in findings(graph):
        if trouble.node is None:
            continue
        if trouble.kind == "non-finite" and was_finite:
            yield _finding("GI501", "backward turned a finite gradient into NaN or Inf", graph, trouble, backward)
        if trouble.kind == "killed" and trouble.starved:
            yield _finding("GI601", "a gradient dies on the way to its parameters", graph, trouble, backward)


def forward_finding(graph: Graph, value: NonfiniteValue, backward: Frame | None) -> Finding:
    """Name where a loss that is not finite came from."""
    node = None if value.node is None else graph.nodes[value.node]
    frame = None if node is None or node.frame is None else graph.frames[node.frame]
    if node is None:
        why = f"The loss is not finite, and {value.label} is not finite either: it came into the graph like that."
        remedy = f"Look at what {value.label} is made of, such as the data or an earlier update of the weights."
    else:
        forward = node.name.partition("Backward")[0]
        why = f"The loss is not finite. The earliest such value that was kept: {value.label}, made by {forward}."
        cause = _cause(NONFINITE, node.name)
        remedy = f"Look at what goes into {line_of(frame)}." if cause is None else _at(frame, cause.remedy)
    return Finding(
        code="GI502",
        title="the loss is NaN or Inf before backward begins",
        text=why,
        places=(*place_of("made", frame), *place_of("backward", backward)),
        remedy=remedy,
        subjects=(value.label,),
    )


def _finding(code: str, title: str, graph: Graph, trouble: Trouble, backward: Frame | None) -> Finding:
    node = graph.nodes[trouble.node or 0]
    frame = None if node.frame is None else graph.frames[node.frame]
    is_killed = code == "GI601"
    cause = _cause(KILLED if is_killed else NONFINITE, node.name)
    got = "a gradient and passed on zeros only" if is_killed else "a finite gradient and passed on one that is not"
    whom = f" It {'starves' if is_killed else 'reaches'} {listed(trouble.starved)}." if trouble.starved else ""
    why = "The reason is not known." if cause is None else cause.why
    look = f"Look at the values there: gradinspect step, with 'break {'zero' if is_killed else 'nan'}'."
    return Finding(
        code=code,
        title=title,
        text=f"{node.name} got {got}. {why}{whom}",
        places=(*place_of("killed" if is_killed else "made", frame), *place_of("backward", backward)),
        remedy=look if cause is None else _at(frame, cause.remedy),
        subjects=trouble.starved,
    )


def _at(frame: Frame | None, remedy: str) -> str:
    return remedy if frame is None else f"At {line_of(frame)}, {remedy[0].lower()}{remedy[1:]}"


def _cause(causes: tuple[_Cause, ...], name: str) -> _Cause | None:
    return next((cause for cause in causes if name.startswith(cause.classes)), None)
