"""What went wrong with the gradients of a watched backward, as findings with a line and a remedy."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from gradinspect.analyses.gradients.observed import Finding as Trouble
from gradinspect.analyses.gradients.observed import findings, gradients_of
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rules.shrunk_gradients import shrunk_gradients
from gradinspect.graph import Frame, Graph, Record, frame_of


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
    _Cause(("Softmax",), "Its outputs add up to 1, so to weigh them all alike, as a sum does, has no derivative.",
           "Weigh the outputs differently, or use the inputs."),
    _Cause(("Sigmoid", "Tanh", "Erf"), "Its input is far from 0, where it is flat.",
           "Scale its input down, or normalise it."),
    _Cause(("Mul",), "The other factor is zero everywhere, as a mask may be.", "Look at that factor."),
)  # fmt: skip


_DIES = "a gradient dies on the way to its parameters"


class NonfiniteValue(Record, frozen=True, kw_only=True):
    """The earliest value of the forward pass, among those that were kept, that is not finite."""

    node: int | None  # that made it; None: it came from outside the graph
    label: str


def gradient_findings(graph: Graph, backward: Frame | None, *, was_finite: bool = True) -> Iterator[Finding]:
    """Find where gradients stopped being finite or died on the way, unless the loss was not finite to begin with."""
    if not was_finite:
        return
    for trouble in findings(graph):
        if trouble.kind == "non-finite":
            yield _nonfinite_finding(graph, trouble, backward)
        if trouble.kind == "killed" and trouble.starved:
            yield _finding(("GI601", _DIES, "a gradient and passed on zeros only"), graph, trouble, backward)
    for trouble in shrunk_gradients(graph):
        yield _finding(("GI601", _DIES, trouble.text), graph, trouble, backward)


def lasting_findings(calls: Sequence[tuple[Frame | None, Sequence[Finding]]]) -> Iterator[Finding]:
    """Yield what the gradients of some calls show, and that they died only where every call on that line shows it.

    The few values of a small layer may all be negative once, by chance.

    Args:
        calls: For each call the line of the backward, and what its gradients show.
    """
    for backward, found in calls:
        rounds = [{(one.code, one.places) for one in other} for line, other in calls if _line(line) == _line(backward)]
        for finding in found:
            if finding.code != "GI601" or all((finding.code, finding.places) in seen for seen in rounds):
                yield finding


def _line(backward: Frame | None) -> tuple[str, int] | None:
    return None if backward is None else (backward.file, backward.line)


def overflows_in_half(graph: Graph) -> bool:
    """Tell whether the first gradients that are not finite are float16, as a GradScaler's are on purpose."""
    first = next((trouble.node for trouble in findings(graph) if trouble.kind == "non-finite"), None)
    ran = next((ran for ran in gradients_of(graph).nodes if ran.node == first), None)
    bad = [] if ran is None else [stats for stats in ran.outgoing if stats is not None and not stats.is_finite]
    return bool(bad) and all(stats.dtype == "float16" for stats in bad)


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


def _nonfinite_finding(graph: Graph, trouble: Trouble, backward: Frame | None) -> Finding:
    """Tell of the first node that made a gradient non-finite, and 0 * inf from what is too large."""
    ran = next((ran for ran in gradients_of(graph).nodes if ran.node == trouble.node), None)
    came = [stats for stats in ran.incoming if stats is not None] if ran is not None else []
    bad = [stats for stats in ran.outgoing if stats is not None and not stats.is_finite] if ran is not None else []
    num_bad, num_elements = sum(stats.num_nonfinite for stats in bad), sum(stats.num_elements for stats in bad)
    is_nan = any(math.isnan(stats.norm) for stats in bad)
    made = f"{num_bad:,} of {num_elements:,} elements {'NaN' if is_nan else 'infinite'}"
    title = "backward turned a finite gradient into NaN or Inf"
    finding = _finding(("GI501", title, f"a finite gradient and made {made}"), graph, trouble, backward)
    if not is_nan or sum(stats.num_zeros for stats in came) < num_bad:
        return finding
    return replace(
        finding,
        text=f"{finding.text} The gradient that came is 0 there, and 0 * inf is NaN: what is masked, or multiplied by "
        "0, after an operator still goes through its derivative.",
        remedy=f"{finding.remedy} Or give it harmless values before, where it is masked: torch.where(mask, x, 1.0).",
    )


def _finding(what: tuple[str, str, str], graph: Graph, trouble: Trouble, backward: Frame | None) -> Finding:
    """Tell of one node.

    Args:
        what: Code, title, and what the node got and passed on.
        graph: The graph.
        trouble: Which node, and whom it concerns.
        backward: The line of the call.
    """
    code, title, got = what
    node = graph.nodes[trouble.node or 0]
    frame = frame_of(graph, node)
    is_killed = code == "GI601"
    cause = _cause(KILLED if is_killed else NONFINITE, node.name)
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
