"""Losses and gradients that are NaN or Inf: the node that made them so, with its line and a remedy."""

from collections.abc import Iterator
from functools import partial
from math import isnan

from msgspec.structs import replace

from gradinspect.analyses.gradients.observed import GradientNote, gradients_of, known
from gradinspect.checks.facts.backward_calls import BackwardEnded, NonfiniteLoss
from gradinspect.checks.facts.graphs import FirstNonfinite
from gradinspect.checks.findings import Finding, Place, caller_in, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.gradients.gradient_causes import (
    Cause,
    CulpritWords,
    at_line,
    culprit_finding,
    operator_of,
    written_operator,
)
from gradinspect.checks.rules.gradients.nonfinite_causes import (
    SOFTMAX,
    cause_of_first,
    derivative_cause,
    is_smooth_power,
    nan_operand,
    value_cause,
)
from gradinspect.checks.rules.gradients.written_calls import written_call
from gradinspect.checks.rules.training.unmoved_parameters import FLOAT32
from gradinspect.graph import Frame, GradientStats, Graph, Node, NodeGradients, frame_of

GRADIENT = Rule(
    code="GI501",
    title="backward turned a finite gradient into NaN or Inf",
    summary="A node received a finite gradient and returned NaN or Inf.",
    explanation="A derivative can be infinite where the value itself is fine: that of sqrt or log at 0. "
    "Often the value was not even used: torch.where passes a gradient of 0 to the branch it does not select, and 0 "
    "times an infinite derivative is NaN. gradinspect names the first node that received a finite gradient and "
    "returned one that is not, and its line. With a GradScaler, gradients overflow in float16 on purpose until it "
    "has found its scale; those are not reported.",
    change="""\
  import torch

  x = torch.tensor([0.0, 1.0, 4.0], requires_grad=True)
- y = torch.where(x > 0, x.sqrt(), 0.0)
- y.sum().backward()  # x.grad[0] is NaN
+ y = torch.where(x > 0, torch.where(x > 0, x, 1.0).sqrt(), 0.0)
+ y.sum().backward()
""",
    remedy="Keep the input itself away from the singularity, also where the result is masked.",
    needs_values=True,
    is_nonfinite=True,
)
LOSS = Rule(
    code="GI502",
    title="loss is NaN or Inf before backward starts",
    summary="The forward pass produced NaN or Inf, so all gradients will be NaN or Inf too.",
    explanation="Backward is not to blame. gradinspect searches the values that nodes saved, from the first "
    "operator of the forward pass on, and names the line of the earliest one that is not finite. On the CPU it also "
    "looks at the results of the first few thousand calls, and names the first that was not finite, among those "
    "that the loss was computed from. Elsewhere, the real culprit may be slightly before the line that is named.",
    change="""\
  import torch

  logits = torch.tensor([0.5, 1.0, -200.0], requires_grad=True)
- p = torch.softmax(logits, -1)  # contains a zero
- loss = -(p * p.log()).sum()  # 0 * -inf
+ log_p = torch.log_softmax(logits, -1)
+ loss = -(log_p.exp() * log_p).sum()
  loss.backward()
""",
    remedy="Use the numerically stable form, such as log_softmax, or keep the input away from the singularity.",
    explains_gradients=True,
    needs_values=True,
    is_nonfinite=True,
)


def nonfinite_findings(ended: BackwardEnded) -> Iterator[Finding]:
    """Find where gradients stopped being finite."""
    for note in ended.notes:
        if note.kind != "non-finite":
            continue
        ran = next((ran for ran in gradients_of(ended.graph).nodes if ran.node == note.node), None)
        if not (_overflows_in_half(ran) and ended.is_scaling()):
            yield _finding(ended.graph, note, ran, ended.backward)


GRADIENT_JUDGE = Judge(BackwardEnded, nonfinite_findings)


def loss_findings(loss: NonfiniteLoss) -> Iterator[Finding]:
    """Name where a loss that is not finite came from."""
    graph, value, backward, step, first = loss
    first = None if step is not None else first
    node = None if value.node is None else graph.nodes[value.node]
    frame = None if node is None else frame_of(graph, node)
    called = None if node is None else caller_in(graph, node, backward)
    masked: tuple[Place, ...] = ()
    if step is not None:
        why = (
            f"The loss is not finite, because {value.label} is not: backward gave it no such gradient, but "
            f"{step.optimizer} has changed it at {line_of(step.line)}."
        )
        remedy = (
            f"Which learning rate and eps does {step.optimizer} have, and how large are {value.label} and its gradient "
            "before that step?"
        )
        if step.lost_eps is not None:
            why += f" Its eps, {step.lost_eps:g}, is 0 in float16, so an element with the gradient 0 became 0 / 0."
            remedy = FLOAT32
    elif node is None:
        why = f"The loss is not finite, and neither is {value.label}, which came into the graph from outside."
        remedy = (
            f"Does {value.label} come from data in which values are missing, or from an earlier update of the weights?"
        )
    else:
        forward = node.name.partition("Backward")[0]
        why = f"The loss is not finite. The earliest saved value that is not finite: {value.label}, made by {forward}."
        is_led_back = first is not None and line_of(first.made) != line_of(frame)
        own = value_cause(graph, node, is_nan=value.is_nan)
        cause = cause_of_first(graph, first) if first is not None and own is None and not is_led_back else own
        why += "" if first is None or is_led_back else _which(first, node, own)
        why += "" if cause is None or is_led_back else f" {cause.why}"
        masked = () if cause is None or is_led_back else cause.places
        remedy = _asked(line_of(frame)) if cause is None else at_line(cause.where or frame, cause.remedy)
    led_back: tuple[Place, ...] = ()
    if first is not None and line_of(first.made) != line_of(frame):
        otherwise = remedy if node is None else _asked(line_of(first.made))
        (why, remedy), led_back = _led_back(graph, why, first, otherwise), _places_of(first, frame)
    yield LOSS.finding(
        text=why,
        places=(
            *led_back, *place_of("made", frame, called), *masked,
            *place_of("optimizer", None if step is None else step.created),
            *place_of("step", None if step is None else step.line),
            *place_of("backward", backward),
        ),
        remedy=remedy,
        subjects=(value.label,),
    )  # fmt: skip


def _led_back(graph: Graph, why: str, first: FirstNonfinite, otherwise: str) -> tuple[str, str]:
    """Say where what is not finite began, and what to do there, or otherwise."""
    where = line_of(first.made)
    why += f"{_made_by(first)} at {where}."
    if first.masked is not None and first.masked != first.made:
        why += f" {line_of(first.masked)} multiplies it by 0, which is NaN again."
        return why, f"At {line_of(first.masked)}, use torch.where(mask, x, 0.0) in place of a product with the mask."
    cause = cause_of_first(graph, first)
    return why + ("" if cause is None else f" {cause.why}"), (
        otherwise if cause is None else at_line(cause.where or first.made, cause.remedy)
    )


def _made_by(first: FirstNonfinite) -> str:
    what = "NaN" if first.is_nan else "infinity"
    return f" The first {what} that it was computed from was made by {written_call(first)}"


def _which(first: FirstNonfinite, node: Node, own: Cause | None) -> str:
    """Say which of several calls on a line it was, unless the reason is that of another operator there."""
    is_another = own is not None and operator_of(node).lower() != first.op.replace("_", "")
    return "" if first.num_alike == 1 or is_another else f"{_made_by(first)} on that line."


def _asked(where: str) -> str:
    return f"Which value that {where} reads is 0, negative, very large or not finite itself?"


def _places_of(first: FirstNonfinite, made: Frame | None) -> tuple[Place, ...]:
    """List the lines at which it began, that of the earliest saved value apart."""
    known, places = {line_of(made)}, list[Place]()
    for role, frame in (("first", first.made), ("masked", first.masked)):
        if line_of(frame) not in known:
            known.add(line_of(frame))
            places += place_of(role, frame)
    return tuple(places)


LOSS_JUDGE = Judge(NonfiniteLoss, loss_findings)


def _overflows_in_half(ran: NodeGradients | None) -> bool:
    """Return whether the gradients that are not finite are float16, as a GradScaler's are on purpose."""
    bad = _nonfinite(ran)
    return bool(bad) and all(stats.dtype == "float16" for stats in bad)


def _nonfinite(ran: NodeGradients | None) -> list[GradientStats]:
    return [] if ran is None else [stats for stats in known(ran.outgoing) if not stats.is_finite]


def _finding(graph: Graph, note: GradientNote, ran: NodeGradients | None, backward: Frame | None) -> Finding:
    """Report the first node that made a gradient non-finite, and distinguish 0 * inf from overflow."""
    if note.hooks:
        return _hook_finding(graph, note, backward)
    came = [] if ran is None else known(ran.incoming)
    bad = _nonfinite(ran)
    num_bad, num_elements = sum(stats.num_nonfinite for stats in bad), sum(stats.num_elements for stats in bad)
    is_nan = any(isnan(stats.norm) for stats in bad)
    made = f"{num_bad:,} of {num_elements:,} elements {'NaN' if is_nan else 'infinite'}"
    what = "NaN" if is_nan else "Infinity"
    alone = f"makes {what if is_nan else what.lower()} from a finite gradient"
    words = CulpritWords(
        rule=GRADIENT, role="made", cause_of=partial(derivative_cause, graph), effect=f"{what} reaches {{names}}",
        does="makes it from a finite gradient", alone=alone, command="break nan",
    )  # fmt: skip
    operand = nan_operand(graph, graph.nodes[note.node or 0]) if is_nan else None
    if operand is not None:
        return _operand_finding(graph, note, operand, made, backward)
    is_masked = operator_of(graph.nodes[note.node or 0]) in SOFTMAX
    if not is_nan or is_masked or sum(stats.num_zeros for stats in came) < num_bad:
        return culprit_finding(words, f"made {made}", graph, note, backward)
    words = words._replace(
        adds=" The incoming gradient is 0 there, and 0 * inf is NaN: masking, or multiplying by 0, after an operator "
        "does not keep the gradient out of its derivative."
    )
    finding = culprit_finding(words, f"made {made}", graph, note, backward)
    return replace(
        finding,
        remedy=f"{finding.remedy} Or mask its input with harmless values: torch.where(mask, x, 1.0).",
    )


def _hook_finding(graph: Graph, note: GradientNote, backward: Frame | None) -> Finding:
    """Name the hooks that made it so: which of several it was is not known."""
    node = graph.nodes[note.node or 0]
    frame = frame_of(graph, node)
    is_one = len(note.hooks) == 1
    owner = f"what {written_operator(node)} gives" if node.leaf is None else node.leaf.name or "a leaf"
    where = "" if frame is None else f" at {line_of(frame)}"
    reached = f"NaN or Inf reaches {listed(note.parameters)}: " if note.parameters else ""
    return GRADIENT.finding(
        text=f"{reached}{listed(note.hooks)}, {'a hook' if is_one else 'hooks'} on {owner}{where}, "
        f"{'gets' if is_one else 'get'} a finite gradient and {'returns' if is_one else 'return'} one that is not.",
        places=(*place_of("hooked", frame, caller_in(graph, node, backward)), *place_of("backward", backward)),
        remedy=f"What does {listed(note.hooks)} divide by, or multiply with?",
        subjects=note.parameters,
    )


def _operand_finding(graph: Graph, note: GradientNote, operand: int, made: str, backward: Frame | None) -> Finding:
    """Name what was NaN in the forward pass already, although the loss was not."""
    product, node = graph.nodes[note.node or 0], graph.nodes[operand]
    frame, used = frame_of(graph, node), frame_of(graph, product)
    cause, infinite = (value_cause(graph, node, is_nan=is_nan) for is_nan in (True, False))
    whys = [one.why for one in (infinite, cause) if one is not None]
    reached = f"NaN reaches {listed(note.parameters)}: " if note.parameters else ""
    where = f" at {line_of(used)}" if used is not None else ""
    reads = "reads" if is_smooth_power(product) else "multiplies by"
    was = "NaN" if infinite is None else "infinite or NaN"
    return GRADIENT.finding(
        text=f"{reached}{written_operator(product)}{where} {reads} what was {was} in the forward pass already, "
        f"made by {written_operator(node)}, though the loss is finite. "
        + " ".join((*whys, f"({product.name} received a finite gradient and made {made}.)")),
        places=(
            *place_of("made", frame, caller_in(graph, node, backward)),
            *place_of("used", None if used == frame else used), *place_of("backward", backward),
        ),
        remedy="" if cause is None else at_line(frame, cause.remedy),
        subjects=note.parameters,
    )  # fmt: skip
