"""What is often a mistake, and as often meant: it is said in a note, and is never a finding.

A target through which gradients flow may belong to a residual that is to be minimized as a whole.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.evidence.objectives.regressions import REGRESSIONS
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, Call, Read, ancestors, calls_behind
from gradinspect.checks.findings import line_of
from gradinspect.graph import Frame

_LINEAR = frozenset((
    "add", "sub", "mul", "rmul", "radd", "rsub", "neg", "unsqueeze", "squeeze", "view", "reshape", "float", "to",
    "clone", "getitem",
))  # fmt: skip
_SUMS = _LINEAR | frozenset(("sum", "mean", "div", "truediv", "stack"))


class Bootstrap(NamedTuple):
    """A regression on a target that was computed by what is trained: `reward + 0.99 * q(next_state)`."""

    target: int  # the call that made it
    loss: int


def bootstraps(calls: Sequence[Call], root: Read) -> Iterator[Bootstrap]:
    """Find the losses behind a root whose target has a gradient to the same parameters as the prediction."""
    for number in calls_behind(calls, root, _SUMS):
        call = calls[number]
        if call.name not in REGRESSIONS or len(call.reads) < 2:
            continue
        prediction, target = call.reads[:2]
        are_live = target.leads_back and prediction.leads_back
        if are_live and _is_shifted(calls, target) and _leaves(calls, prediction) & _leaves(calls, target):
            yield Bootstrap(target.call, number)


def bootstrap_note(target: Frame | None, loss: Frame | None) -> str:
    """Say where a target is computed that gradients flow through."""
    return (
        f"Perhaps meant: gradients also flow through the target that {line_of(target)} computes for the loss at "
        f"{line_of(loss)}. If it is only to be reached, as the target of Q-learning, detach() it."
    )


def _is_shifted(calls: Sequence[Call], target: Read) -> bool:
    """Return whether something without a graph is added to a target, as a reward is."""
    for number in calls_behind(calls, target, _LINEAR):
        call = calls[number]
        if call.name.strip("_") in ("add", "radd") and {read.is_live for read in call.reads} == {True, False}:
            return True
    return False


def _leaves(calls: Sequence[Call], read: Read) -> set[int]:
    behind = ancestors(calls, read.call, stops_at_leaves=True) if read.call != OUTSIDE else set()
    return {one.leaf for number in behind for one in calls[number].reads if one.leaf != NO_LEAF and one.is_live}
