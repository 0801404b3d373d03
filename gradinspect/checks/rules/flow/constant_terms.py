"""Terms of a loss that carry no gradient, because they were detached on their way into it.

NOTE [Constant terms on purpose]
People add detached terms to a loss to log their sum, or to compare it with an earlier loss, and say so with detach() or
no_grad(). So these count only for a term made of parameters themselves, as weight decay is, and for one that detach()
returned and a weight was multiplied with: neither has another purpose.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, Call, Read, calls_behind
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Rule, RuleDoc
from gradinspect.checks.rules.flow.detach_causes import DETACH_REMEDIES
from gradinspect.graph import Frame

_SUMS = frozenset(("add", "sub", "rsub", "radd", "iadd", "isub"))
_SCALAR = _SUMS | frozenset(("mul", "rmul", "imul", "div", "truediv", "true_divide", "neg", "float", "to"))
_WEIGHTS = frozenset(("mul", "rmul", "imul"))
_BY_MISTAKE = frozenset(("data", "copy", "integer"))

CONSTANT = Rule(
    doc=RuleDoc(
        code="GI306",
        title="a term of the loss carries no gradient",
        summary="Something that was detached is added to the loss, so it changes the number and no gradient.",
        explanation="A sum has a gradient if one of its terms has, so a term that lost its graph is not an error. "
        "Typical cases are a penalty on weights that reads p.data, torch.tensor() of a list of losses, and a count of "
        "wrong predictions. The loss includes the term, and training ignores it. Terms of activations that went "
        "through no_grad(), or through detach() and no weight, are not reported: they may be there to be logged.",
        change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 4)
  x, y = torch.randn(5, 8), torch.randint(4, (5,))
- penalty = sum(p.data.square().sum() for p in model.parameters())  # no graph
+ penalty = sum(p.square().sum() for p in model.parameters())
  loss = nn.functional.cross_entropy(model(x), y) + 0.01 * penalty
  loss.backward()
""",
        remedy="Compute the term from the tensors themselves.",
    )
)


class ConstantTerm(NamedTuple):
    """A term of a loss that lost its graph."""

    cut: int  # the call that detached it
    used: int  # the call that added it


def constant_terms(calls: Sequence[Call], root: Read) -> Iterator[ConstantTerm]:
    """Walk back from a scalar loss over what is added up in it. NOTE [Constant terms on purpose]."""
    for number in calls_behind(calls, root, _SCALAR):
        if calls[number].name.strip("_") not in _SUMS:
            continue
        for read in calls[number].reads:
            cut = None if read.is_live else _cut(calls, read.call)
            if cut is not None:
                yield ConstantTerm(cut, number)


def constant_term_finding(
    calls: Sequence[Call], term: ConstantTerm, lines: tuple[Frame | None, Frame | None], backward: Frame | None
) -> Finding:
    """Make the finding for a term.

    Args:
        calls: All calls.
        term: The term.
        lines: Where it was detached, and where it was added.
        backward: The line of the backward call.
    """
    call = calls[term.cut]
    cause = DETACH_REMEDIES[call.cause or "unknown"]
    cut, used = lines
    return CONSTANT.finding(
        text=f"What {line_of(used)} adds to the loss has no graph: {cause.why.format(op=call.name)} Backward treats it "
        "as a constant, so it changes no gradient.",
        places=(*place_of("detached", cut), *place_of("used", used), *place_of("backward", backward)),
        remedy=cause.remedy.format(op=call.name, where=line_of(cut), used=line_of(used)),
    )


def _cut(calls: Sequence[Call], number: int) -> int | None:
    """Find the first call that detached a term; None if that may be on purpose, or another rule explains it."""
    todo, seen, cuts, is_weighted = [number], {OUTSIDE}, [], False
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        if calls[one].cause is None:
            is_weighted = is_weighted or (calls[one].name.strip("_") in _WEIGHTS and len(calls[one].reads) == 1)
            todo += [read.call for read in calls[one].reads if read.leaf == NO_LEAF]
        else:
            cuts.append(one)
    return min(cuts) if cuts and all(_is_by_mistake(calls[one], is_weighted=is_weighted) for one in cuts) else None


def _is_by_mistake(call: Call, *, is_weighted: bool) -> bool:
    if call.is_off:
        return False
    is_term = is_weighted or any(read.leaf != NO_LEAF for read in call.reads)
    return call.cause in _BY_MISTAKE or (call.cause == "detach" and is_term)
