"""Gradients that are part of a loss although they have no graph: a penalty without `create_graph=True`."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import GradientTerm, NoticedAt, SameCause
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.checks.rules.flow.detach_causes import DETACH_REMEDIES, READ_FROM_GRAD
from gradinspect.checks.rules.flow.detached_parameters import detached_words
from gradinspect.checks.rules.flow.missing_gradients import and_failure, failure, places_of

NO_GRAPH = Rule(
    code="GI402",
    title="gradient used in a loss has no graph",
    summary="A loss contains a gradient computed without create_graph=True, which backward treats as a constant.",
    explanation="autograd.grad and backward return gradients without a graph unless create_graph=True. Such a "
    "gradient is a constant in a loss: a gradient penalty changes the printed number and nothing else, and "
    "backward fails on a loss made of gradients alone. gradinspect follows each gradient and reports it where it "
    "is added to a loss. Intentional uses are not reported: first-order MAML, which subtracts the gradient from "
    "the very tensor it belongs to, and gradients that move an input, scale another loss, are logged, or detached, "
    "or that belong to a formula with nothing to learn in it, such as the forces of a reference potential.",
    change="""\
  import torch
  from torch import nn

  critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
  x = torch.randn(16, 4, requires_grad=True)
- (g,) = torch.autograd.grad(critic(x).sum(), x)
+ (g,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
  penalty = ((g.norm(2, dim=1) - 1) ** 2).mean()
  loss = critic(x).mean() + 10 * penalty
  loss.backward()
""",
    remedy="Pass create_graph=True to the autograd.grad or backward that computes the gradient.",
)


def term_findings(term: GradientTerm) -> Iterator[Finding]:
    """Report a gradient without a graph that a loss consists of, or that is added to it."""
    cause = READ_FROM_GRAD if term.is_attribute else DETACH_REMEDIES["gradient"]
    fails = failure(NoticedAt(kind="backward", frame=term.backward))
    effect = fails if term.is_refused else "Backward treats the added term as a constant, so it changes no gradient."
    yield NO_GRAPH.finding(
        text=f"{cause.why} {effect}",
        places=(
            *place_of("gradient", term.gradient), *place_of("used", term.used), *place_of("backward", term.backward),
        ),
        remedy=cause.remedy.format(where=line_of(term.gradient)),
    )  # fmt: skip


def only_path_findings(group: SameCause) -> Iterator[Finding]:
    """Report parameters whose only path to the loss is through a gradient without a graph."""
    first = group.first
    if first.kind == "cut" and first.cause == "gradient":
        why, remedy = detached_words(group)
        yield NO_GRAPH.finding(
            text=f"{why}{and_failure(first.noticed)}", places=places_of(first), remedy=remedy, subjects=group.names
        )


TERM_JUDGE = Judge(GradientTerm, term_findings)
ONLY_PATH_JUDGE = Judge(SameCause, only_path_findings)
