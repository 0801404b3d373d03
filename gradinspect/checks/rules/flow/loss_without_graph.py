"""A loss that does not require grad: detached, frozen, or computed from constants."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import LossWithoutGraph, NoticedAt, SameCause
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.flow.detached_parameters import detached_words
from gradinspect.checks.rules.flow.gradient_terms import NO_GRAPH
from gradinspect.checks.rules.flow.missing_gradients import failure, places_of
from gradinspect.graph import Frame

NO_GRAD_LOSS = Rule(
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


def refused_findings(loss: LossWithoutGraph) -> Iterator[Finding]:
    """Say why a loss has no graph at all."""
    made, backward = place_of("made", loss.made), place_of("backward", loss.backward)
    if loss.detached:
        group = SameCause(loss.detached)
        why, remedy = detached_words(group)
        rule = NO_GRAPH if group.first.cause == "gradient" else NO_GRAD_LOSS
        yield rule.finding(
            text=f"{why} {failure(group.first.noticed)}",
            places=places_of(group.first),
            remedy=remedy,
            subjects=group.names,
        )
    elif loss.frozen:
        since = "" if loss.frozen_at is None else f" since {line_of(loss.frozen_at)}"
        yield NO_GRAD_LOSS.finding(
            text=f"All parameters it was computed from are frozen{since}: {listed(loss.frozen)}. "
            f"{_failure_of(loss.backward)}",
            places=(*made, *place_of("frozen", loss.frozen_at), *backward),
            remedy="Call requires_grad_() on the parameters that should learn.",
            subjects=loss.frozen,
        )
    else:
        yield NO_GRAD_LOSS.finding(
            text=f"None of the tensors it was computed from requires grad. {_failure_of(loss.backward)}",
            places=(*made, *backward),
            remedy="Create what should be learned with requires_grad=True, or as an nn.Parameter.",
        )


JUDGE = Judge(LossWithoutGraph, refused_findings)


def _failure_of(backward: Frame | None) -> str:
    return failure(NoticedAt(kind="backward", frame=backward))
