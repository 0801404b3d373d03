"""A loss that does not require grad: detached, frozen, or computed from constants."""

from collections.abc import Sequence

from gradinspect.checks.facts.value_flow import Call, FlowOutcome
from gradinspect.checks.facts.values import MissingGradient, NoticedAt
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Rule, RuleDoc
from gradinspect.checks.rules.flow.detached_parameters import detached_words
from gradinspect.checks.rules.flow.gradient_terms import NO_GRAPH
from gradinspect.checks.rules.flow.missing_gradients import SameCause, failure, places_of
from gradinspect.graph import Frame

NO_GRAD_LOSS = Rule(
    doc=RuleDoc(
        code="GI302",
        title="loss does not require grad",
        summary="The loss has no graph, so backward raises an error.",
        explanation="'element 0 of tensors does not require grad and does not have a grad_fn': no path leads from the "
        "loss to a tensor that requires grad. Either a call detached every path, as an accuracy computed with argmax "
        "does, or a no_grad is left over from evaluation, or all parameters are frozen, or no tensor was created with "
        "requires_grad=True. gradinspect says which, and on which line. loss.requires_grad_() silences the error and "
        "trains nothing.",
        change="""\
  import torch
  from torch import nn

  model = nn.Linear(4, 3)
  x, y = torch.randn(8, 4), torch.randint(3, (8,))
- predicted = model(x).argmax(1)  # integers have no gradient
- loss = (predicted != y).float().mean()
+ loss = nn.functional.cross_entropy(model(x), y)
  loss.backward()
""",
        remedy="Use a differentiable loss, such as F.cross_entropy(model(x), y), and enable gradients in training.",
    )
)


def refused_finding(detached: Sequence[MissingGradient], made: Frame | None, backward: Frame | None) -> Finding:
    """Make the finding for a loss that has no graph at all.

    Args:
        detached: What it was computed from, up to the nearest call that detached; nothing where all is constant.
        made: The line that made it.
        backward: The line that wants to go back from it.
    """
    if detached:
        group = SameCause(tuple(detached))
        why, remedy = detached_words(group)
        rule = NO_GRAPH if group.first.cause == "gradient" else NO_GRAD_LOSS
        return rule.finding(
            text=f"{why} {failure(group.first.noticed)}",
            places=places_of(group.first),
            remedy=remedy,
            subjects=group.names,
        )
    return NO_GRAD_LOSS.finding(
        text=f"None of the tensors it was computed from requires grad. {_failure_of(backward)}",
        places=(*place_of("made", made), *place_of("backward", backward)),
        remedy="Create what should be learned with requires_grad=True, or as an nn.Parameter.",
    )


def frozen_finding(names: Sequence[str], frozen: Frame | None, made: Frame | None, backward: Frame | None) -> Finding:
    """Make the finding for a loss whose parameters are all frozen."""
    where = "" if frozen is None else f" since {line_of(frozen)}"
    return NO_GRAD_LOSS.finding(
        text=f"All parameters it was computed from are frozen{where}: {listed(names)}. {_failure_of(backward)}",
        places=(*place_of("made", made), *place_of("frozen", frozen), *place_of("backward", backward)),
        remedy="Call requires_grad_() on the parameters that should learn.",
        subjects=names,
    )


def nearest_cut(found: Sequence[FlowOutcome], calls: Sequence[Call]) -> list[int]:
    """Choose the tensors that were detached by the same cause, nearest to the loss.

    Disabled gradients are one cause, on however many lines.
    """
    cut = [place for place, outcome in enumerate(found) if outcome.kind == "cut"]
    if not cut:
        return []
    seen = [place for place in cut if found[place].cause != "python"] or cut
    last = max((found[place] for place in seen), key=lambda outcome: outcome.cut or 0)
    if last.cause == "grad_off":
        return [place for place in seen if found[place].cause == "grad_off"]
    line = calls[last.cut or 0].frame
    return [place for place in seen if calls[found[place].cut or 0].frame == line]


def _failure_of(backward: Frame | None) -> str:
    return failure(NoticedAt(kind="backward", frame=backward))
