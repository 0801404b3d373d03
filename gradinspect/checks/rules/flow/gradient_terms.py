"""Gradients that are part of a loss although they have no graph: a penalty without `create_graph=True`.

Intentional uses are not reported: a gradient that updates the very tensor it belongs to (first-order MAML), that scales
another loss (adaptive weights), that moves an input (adversarial examples), or that went through `detach()`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, Call, Read, ancestors
from gradinspect.checks.facts.values import NoticedAt
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule, RuleDoc
from gradinspect.checks.rules.flow.detach_causes import DETACH_REMEDIES, READ_FROM_GRAD
from gradinspect.checks.rules.flow.detached_parameters import detached_words
from gradinspect.checks.rules.flow.missing_gradients import SameCause, and_failure, failure, places_of
from gradinspect.graph import Frame

_SUMS = frozenset(("add", "sub", "rsub", "radd", "iadd", "isub", "stack", "cat", "hstack", "vstack", "concat"))
_LINEAR = _SUMS | frozenset((
    "mul", "div", "true_divide", "neg", "mean", "sum", "squeeze", "reshape", "view", "flatten", "float", "to",
    "nanmean", "unsqueeze", "getitem",
))  # fmt: skip
_DETACHES = frozenset(("detach", "detach_", "data"))
_PRODUCTS = frozenset(("mul", "div", "true_divide"))
_RESIDUAL = frozenset((
    "pow", "square", "abs", "norm", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
))  # fmt: skip

NO_GRAPH = Rule(
    doc=RuleDoc(
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
)


class LostTerm(NamedTuple):
    """A term of a loss that is made of a gradient without a graph."""

    gradient: int  # the call that computed it
    used: int  # the call that added it


class _Step(NamedTuple):
    call: int
    is_linear: bool  # whether the loss is linear in what this call made


def lost_terms(calls: Sequence[Call], root: Read, is_trained: Callable[[int], bool]) -> Iterator[LostTerm]:
    """Walk back from a loss over what is added up in it, as far as a gradient could, and look at what has no graph.

    Args:
        calls: In the order in which they were made.
        root: The loss.
        is_trained: Whether a leaf, of which a gradient was taken, is a parameter rather than an input.
    """
    if not root.leads_back or root.call == OUTSIDE:
        return
    todo, seen = [_Step(root.call, is_linear=True)], {root.call}
    while todo:
        step = todo.pop()
        call = calls[step.call]
        plain = call.name.strip("_")
        if plain not in _LINEAR | _RESIDUAL or (plain in _PRODUCTS and sum(read.is_live for read in call.reads) > 1):
            continue
        is_linear = step.is_linear and plain in _LINEAR
        if plain in _SUMS and any(read.is_live for read in call.reads):
            term = _term(calls, step.call, is_trained, is_linear=is_linear)
            if term is not None:
                yield term
        for read in call.reads:
            if read.leads_back and read.call != OUTSIDE and read.call not in seen:
                seen.add(read.call)
                todo.append(_Step(read.call, is_linear))


def lost_term_finding(
    gradient: Frame | None,
    used: Frame | None,
    backward: Frame | None,
    *,
    is_refused: bool = False,
    is_attribute: bool = False,
) -> Finding:
    """Make the finding for a gradient without a graph that a loss consists of, or that is added to it.

    Args:
        gradient: The line that computed it.
        used: The line that added it.
        backward: The line that goes back from the loss.
        is_refused: Whether the loss consists of nothing else.
        is_attribute: Whether it was read from `.grad`.
    """
    cause = READ_FROM_GRAD if is_attribute else DETACH_REMEDIES["gradient"]
    fails = failure(NoticedAt(kind="backward", frame=backward))
    effect = fails if is_refused else "Backward treats the added term as a constant, so it changes no gradient."
    return NO_GRAPH.finding(
        text=f"{cause.why} {effect}",
        places=(*place_of("gradient", gradient), *place_of("used", used), *place_of("backward", backward)),
        remedy=cause.remedy.format(where=line_of(gradient)),
    )


def only_path_findings(group: SameCause) -> Iterator[Finding]:
    """Report parameters whose only path to the loss is through a gradient without a graph."""
    first = group.first
    if first.kind == "cut" and first.cause == "gradient":
        why, remedy = detached_words(group)
        yield NO_GRAPH.finding(
            text=f"{why}{and_failure(first.noticed)}", places=places_of(first), remedy=remedy, subjects=group.names
        )


JUDGE = Judge(SameCause, only_path_findings)


def _term(calls: Sequence[Call], used: int, is_trained: Callable[[int], bool], *, is_linear: bool) -> LostTerm | None:
    others = [read for read in calls[used].reads if read.is_live]
    for read in calls[used].reads:
        if read.is_live or read.call == OUTSIDE:
            continue
        behind = ancestors(calls, read.call, stops_at_leaves=True)
        gradient = max((number for number in behind if calls[number].cause == "gradient"), default=None)
        if gradient is None or any(_is_same(other, one) for other in others for one in calls[gradient].wrt):
            continue
        is_on_purpose = any(calls[number].name in _DETACHES for number in behind if number > gradient)
        learned = _learned(calls, gradient, is_trained)
        is_known = not calls[gradient].is_attribute  # what a gradient read from `.grad` depends on is not
        if (learned or not is_known) and (is_linear or (not is_on_purpose and _share_a_leaf(calls, learned, others))):
            return LostTerm(gradient, used)
    return None


def _is_same(first: Read, second: Read) -> bool:
    if first.leaf != NO_LEAF or second.leaf != NO_LEAF:
        return first.leaf == second.leaf
    return first.call == second.call != OUTSIDE


def _learned(calls: Sequence[Call], gradient: int, is_trained: Callable[[int], bool]) -> set[int]:
    """Collect the leaves that a gradient depends on and that may learn: not the input that it belongs to."""
    inputs = {one.leaf for one in calls[gradient].wrt}
    behind = _leaves(calls, ancestors(calls, gradient, stops_at_leaves=True))
    return {leaf for leaf in behind if leaf not in inputs or is_trained(leaf)}


def _share_a_leaf(calls: Sequence[Call], learned: set[int], others: Sequence[Read]) -> bool:
    """Return whether a gradient was taken in the same network that the rest comes from."""
    return any(learned & _leaves(calls, ancestors(calls, other.call, stops_at_leaves=True)) for other in others)


def _leaves(calls: Sequence[Call], numbers: set[int]) -> set[int]:
    return {read.leaf for number in numbers for read in calls[number].reads if read.leaf != NO_LEAF and read.is_live}
