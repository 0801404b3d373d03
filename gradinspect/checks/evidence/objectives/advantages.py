"""Advantages and targets that have a graph to the network that estimates values.

NOTE [Attached on purpose]
The loss of a policy multiplies a log-probability by how much better an action was than expected. If that has a graph,
the loss moves the expectation as well, away from what is to be expected. A factor that only has parameters which the
log-probability has too, such as an entropy, is another thing, and so is one that is no difference from a constant: a
responsibility in a mixture has a graph on purpose. A residual that is minimized as a whole may have gradients through
both of its sides; but the largest of a network's own next values is a target. A copy of the network that no optimizer
holds may have gradients, too: nothing follows them, so that the target stays where it is.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.evidence.objectives.regressions import (
    ADDS,
    PRODUCTS,
    SAME_VALUES,
    SUMS,
    leaves_behind,
    live_behind,
    regressions,
)
from gradinspect.checks.facts.value_flow import OUTSIDE, Call, Read, calls_behind

_SCALES = PRODUCTS | frozenset(("div", "truediv", "true_divide", "neg"))
_SCORES = frozenset(("nll_loss", "cross_entropy"))
_TO_SCORE = SUMS | frozenset(("exp", "clamp", "clip", "min", "minimum"))
_GATHERS = frozenset(("stack", "cat"))  # the steps of a rollout
_SCORING = ("log_prob(", ".log_prob")
_CHOICES = frozenset(("max", "amax", "gather", "min", "minimum"))
_TARGET = ADDS | _SCALES | frozenset(("unsqueeze", "squeeze", "view", "reshape", "float", "to", "clone", "getitem"))


class Attached(NamedTuple):
    """A product of a log-probability and an advantage that has a graph."""

    subtracted: int
    scored: int
    used: int


class Chosen(NamedTuple):
    """A regression on a value that was chosen among those of the same network."""

    choice: int
    target: int
    used: int


def attached_advantages(calls: Sequence[Call], root: Read, code_of: Callable[[int], str]) -> Iterator[Attached]:
    """Find the products of a log-probability and a difference that leads to other parameters.

    NOTE [Attached on purpose].

    Args:
        calls: In the order in which they were made.
        root: The loss.
        code_of: The line of the program that made a call.
    """
    for number in calls_behind(calls, root, _TO_SCORE):
        reads = calls[number].reads
        if calls[number].name.strip("_") not in PRODUCTS or len(reads) != 2 or not all(one.is_live for one in reads):
            continue
        for score, factor in (reads, reads[::-1]):
            scored, subtracted = _scored(calls, score, code_of), _difference(calls, factor)
            if scored is None or subtracted is None:
                continue
            other = _scored(calls, factor, code_of)
            if other is not None and code_of(other) != code_of(scored):  # an estimate may be made on the same line
                continue
            if leaves_behind(calls, factor) - leaves_behind(calls, score):
                yield Attached(subtracted, scored, number)


def _scored(calls: Sequence[Call], read: Read, code_of: Callable[[int], str]) -> int | None:
    """Find the call that took the log-probability of an action."""
    for number in calls_behind(calls, read, (_TO_SCORE | SAME_VALUES | _GATHERS) - {"getitem"}):
        call = calls[number]
        is_index = call.name.strip("_") in ("gather", "getitem") and _is_log_softmax(calls, call)
        if is_index or call.name in _SCORES or any(text in code_of(number) for text in _SCORING):
            return number
    return None


def _is_log_softmax(calls: Sequence[Call], call: Call) -> bool:
    return any(read.leads_back and calls[read.call].name == "log_softmax" for read in call.reads)


def _difference(calls: Sequence[Call], read: Read) -> int | None:
    """Find the difference between something without a graph and an estimate, behind a factor."""
    for number in calls_behind(calls, read, SAME_VALUES | _SCALES | _GATHERS | frozenset(("sub", "add"))):
        call = calls[number]
        if call.name.strip("_") in ("sub", "rsub") and {one.is_live for one in call.reads} == {True, False}:
            return number
    return None


def chosen_targets(calls: Sequence[Call], root: Read, is_held: Callable[[int], bool]) -> Iterator[Chosen]:
    """Find the regressions on the best of the same network's next values. NOTE [Attached on purpose].

    Args:
        calls: In the order in which they were made.
        root: The loss.
        is_held: Whether an optimizer holds a leaf.
    """
    for regression in regressions(calls, root):
        for target, prediction in regression.sides:
            if not (target.leads_back and prediction.leads_back) or not _is_shifted(calls, target):
                continue
            choice = next((one for one in calls_behind(calls, target, _TARGET) if calls[one].name in _CHOICES), None)
            if choice is None or _is_shifted(calls, prediction):
                continue
            if _moves_with(calls, target, prediction, is_held):
                yield Chosen(choice, target.call, regression.call)
                break


def _moves_with(calls: Sequence[Call], target: Read, prediction: Read, is_held: Callable[[int], bool]) -> bool:
    """Return whether a step on the loss changes a target by what the prediction has, or by a copy of it."""
    predicting, (_, reached) = leaves_behind(calls, prediction), live_behind(calls, target.call)
    if predicting & reached:
        return True
    is_copy = bool(predicting & leaves_behind(calls, target, stops_at_leaves=False))
    return is_copy and any(is_held(leaf) for leaf in reached)


def _is_shifted(calls: Sequence[Call], read: Read) -> bool:
    """Return whether something without a graph is added to a value, as a reward is."""
    return any(
        calls[number].name.strip("_") in ("add", "radd")
        and {one.is_live for one in calls[number].reads} == {True, False}
        for number in calls_behind(calls, read, _TARGET)
        if number != OUTSIDE
    )
