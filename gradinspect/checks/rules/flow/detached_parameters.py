"""Parameters whose values reach the loss without their graph: the line that detached them."""

import re
from collections.abc import Iterator, Sequence

from gradinspect.checks.facts.values import MissingGradient, SameCause
from gradinspect.checks.findings import Finding, line_of, listed
from gradinspect.checks.rewriting import compared
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.flow.detach_causes import COMPARISONS, DETACH_REMEDIES, INSTEAD, SAMPLED, DetachRemedy
from gradinspect.checks.rules.flow.meant_detaches import which_detach
from gradinspect.checks.rules.flow.missing_gradients import and_failure, places_of
from gradinspect.checks.rules.flow.remade_tensors import collects, remade_tensor, way_to_array
from gradinspect.checks.rules.graphs.carried_state import call_in
from gradinspect.graph import Frame

MAX_STEPS = 6  # of a path that are named
DETACHED = Rule(
    code="GI301",
    title="parameters are detached from the loss",
    summary="A parameter's value reaches the loss without its graph, so no gradient reaches the parameter.",
    explanation="Some call on the way returned the value without its graph: detach(), .data, torch.tensor() of a "
    "tensor, argmax and other integers, no_grad, item() and NumPy, writing to .data, wrapping in Variable or "
    "nn.Parameter, a reentrant checkpoint without an input that requires grad. torch says nothing: the optimizer "
    "finds .grad is None and skips the parameter. gradinspect records every call, follows the value forward from "
    "the parameter, and names the call whose result no longer requires grad. Intentional detaching is not "
    "reported: parameters that another observed backward reaches, and those that no optimizer step finds without a "
    "gradient.",
    change="""\
  import torch
  from torch import nn

  encoder, head = nn.Linear(4, 8), nn.Linear(8, 2)
  parameters = [*encoder.parameters(), *head.parameters()]
  optimizer = torch.optim.SGD(parameters, lr=0.1)
  for _ in range(2):
-     features = encoder(torch.randn(16, 4)).detach()
+     features = encoder(torch.randn(16, 4))
      loss = head(features).square().mean()
      optimizer.zero_grad()
      loss.backward()
-     optimizer.step()  # leaves the encoder unchanged
+     optimizer.step()
""",
    remedy="Remove the call that detaches. To freeze the parameters, do not pass them to the optimizer.",
)
_ONLY_FORCES = re.compile(r"[\w.\[\]]+\.requires_grad(?:_\(.*\)| ?= ?True)(?: *#.*)?|[\w.\[\]]+ = \w*Variable\(.*\)")
_MAKES_LEAF = re.compile(r"\.requires_grad_\([^()]*\)|requires_grad=True|\.data\b|\.detach\(\)")


def detached_findings(group: SameCause) -> Iterator[Finding]:
    """Name the line that detached parameters."""
    first = group.first
    if first.kind == "cut" and first.cause != "gradient":
        why, remedy = detached_words(group)
        yield DETACHED.finding(
            text=f"{why}{and_failure(first.noticed)}", places=places_of(first), remedy=remedy, subjects=group.names
        )


JUDGE = Judge(SameCause, detached_findings)


def detached_words(group: SameCause) -> tuple[str, str]:
    """Say why tensors are detached, and what to do."""
    first = group.first
    cause = _remedy_of(first)
    how = "" if len(first.path) < 2 else f" The path of {first.name}: {_path(first.path)}."
    where = line_of(first.off or first.cut)
    hidden = ""
    if first.forced is not None:
        hidden = f" {line_of(first.forced)} makes a leaf of what is computed from it, so backward does not fail."
    is_told = first.forced in {None, first.cut} or "{forced}" in cause.remedy
    delete = "" if is_told else f" {_without_leaf(first.forced)}: it only hides that there is no graph."
    return (
        f"No gradient reaches {listed(group.names)}. {cause.why.format(op=first.op)}{how}{hidden}",
        cause.remedy.format(op=first.op, where=where, used=line_of(first.used), forced=line_of(first.forced)) + delete,
    )


def _without_leaf(forced: Frame | None) -> str:
    """Say how to avoid making a leaf: drop a line that does nothing else, keep one that computes something."""
    code = "" if forced is None else forced.code.strip()
    words = [] if _ONLY_FORCES.fullmatch(code) else _MAKES_LEAF.findall(code)
    return f"Leave out {listed(words)} at {line_of(forced)}" if words else f"Delete {line_of(forced)}"


def _remedy_of(one: MissingGradient) -> DetachRemedy:
    """Choose the words for a cause, from the line where it happened as far as that is known."""
    known = DETACH_REMEDIES[one.cause]
    code = "" if one.cut is None else one.cut.code
    if one.other is not None and not _is_sample(one):
        return known._replace(remedy=_again(one) if one.forced is None else _copied(one))
    if one.off is not None and one.off.code.startswith("@"):
        return known._replace(remedy="Remove the decorator at {where} if this path should train.")
    if _is_sample(one):
        return SAMPLED
    if one.cause == "detach" and (question := which_detach(code, one.name)) is not None:
        return known._replace(remedy=_escaped(question))
    if one.cause == "integer":
        return known._replace(remedy=_instead_of_integers(one, code) or known.remedy)
    remade = remade_tensor(code)
    if remade is not None and (one.cause == "python" or (one.cause == "copy" and one.num_read > 1)):
        cat = ", or torch.cat() if each has a dimension of its own" if remade.is_flat else ""
        return DetachRemedy(
            DETACH_REMEDIES["copy"].why.replace("{op}()", f"{_escaped(remade.maker)}()"),
            f"Use {_escaped(remade.stacked)} at {{where}}{cat}.",
        )
    if one.cause == "python":
        return known._replace(remedy=_stay_in_torch(one, code) or known.remedy)
    return known


def _again(one: MissingGradient) -> str:
    """Say what to do where another loss needs the value without its graph."""
    here, there = (
        "backward" if line is None else f"{call_in(line)} at {line_of(line)}" for line in (one.backward, one.other)
    )
    way = "{op}()" if one.cause == "detach" else ".data" if one.cause == "data" else "gradients disabled"
    return (
        f"If only {_escaped(here)} should train them, keep {way} at {{where}} for {_escaped(there)}, and compute the "
        "same again with its graph for the other loss."
    )


def _copied(one: MissingGradient) -> str:
    """Say what to do where a line makes leaves of copies, and another call needs only these."""
    return (
        f"If backward at {line_of(one.backward)} should train them, use the tensors themselves at {{where}} and detach "
        f"nothing on the way from there, so that the call at {line_of(one.other)} goes through their graph. "
        f"Second-order gradients need create_graph=True at {line_of(one.other)} as well."
    )


def _stay_in_torch(one: MissingGradient, code: str) -> str | None:
    """Say how to avoid the number, and the tensor that is made from it later."""
    is_method = one.op in ("item", "tolist")
    way = way_to_array(code) if one.op == "numpy" else ""
    stay = "Remove .{op}() at {where}" if is_method else "Keep the tensor at {where}"
    stay = f"Remove {_escaped(way)} at {{where}}" if way else stay
    used = one.used if one.used != one.cut and _is_in_one_function(one.used, one.cut) else None
    remade = None if used is None else remade_tensor(used.code)
    if remade is None:
        if way:
            return f"{stay}, use torch functions only from there on, and the tensor itself where the array is made one."
        return f"{stay} and go on with the tensor, by torch functions only." if is_method else None
    same = remade.stacked if remade.is_list or collects(code) else f"{remade.values} itself"
    maker = _escaped(remade.maker)
    return f"{stay}, use torch functions only from there on, and {_escaped(same)} instead of {maker}() at {{used}}."


def _is_in_one_function(first: Frame | None, second: Frame | None) -> bool:
    """Return whether two lines are in one function: a name on one of them means the same on the other."""
    return None not in (first, second) and (first.file, first.function) == (second.file, second.function)  # type: ignore[union-attr]


def _instead_of_integers(one: MissingGradient, code: str) -> str | None:
    op = one.op.strip("_")
    if one.forced is not None and op in COMPARISONS:
        return _soft(code)
    if (one.noticed.kind == "backward" or one.forced is not None) and op != "multinomial":  # the loss itself
        return (
            "Compute the loss from the scores behind {op} at {where}, before any softmax or sigmoid: "
            "cross_entropy(scores, target.long()) where each row has a score for each class, "
            "binary_cross_entropy_with_logits(scores, target) where there is one score for each target."
        )
    if op in COMPARISONS:
        soft = compared(code)
        hard = "(hard - soft)" if soft is None else f"(({_escaped(soft.comparison)}).float() - {_escaped(soft.left)})"
        name = "soft" if soft is None else _escaped(soft.left)
        return f"At {{where}}, use a straight-through estimator: {name} + {hard}.detach()."
    return f"At {{where}}, use {INSTEAD[op]} instead of {{op}}." if op in INSTEAD else None


def _soft(code: str) -> str:
    """Advise the form of a thresholded metric that has a gradient."""
    found = compared(code)
    instead = "the compared tensor itself instead of the comparison"
    if found is not None:
        instead = f"{_escaped(found.left)} itself instead of {_escaped(found.comparison)}"
    return (
        f"At {{where}}, use {instead}, and keep floating-point numbers from there on: a * b for a & b, a + b - a * b "
        "for a | b. Remove requires_grad at {forced}: it only hides that the loss has no graph."
    )


def _escaped(code: str) -> str:
    """Escape the braces of code for str.format()."""
    return code.replace("{", "{{").replace("}", "}}")


def _is_sample(one: MissingGradient) -> bool:
    """Return whether a distribution's sample() disabled gradients."""
    return one.cause == "grad_off" and one.off is not None and ".sample(" in one.off.code


def _path(path: Sequence[str]) -> str:
    if len(path) <= MAX_STEPS:
        return ", ".join(path)
    half = MAX_STEPS // 2
    return f"{', '.join(path[:half])}, {len(path) - 2 * half} more, {', '.join(path[-half:])}"
