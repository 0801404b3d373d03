"""Gradients that a loss counts with although they carry no graph: a penalty without `create_graph=True`.

Told from what is meant so: a gradient that updates the very tensor it belongs to (first-order MAML), that scales
another loss (adaptive weights), that moves an input (adversarial examples), or that went through `detach()`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gradinspect.checks.rules.value_flow import NO_LEAF, OUTSIDE, Call, Read, ancestors

_SUMS = frozenset(("add", "sub", "rsub", "radd", "iadd", "isub", "stack", "cat", "hstack", "vstack", "concat"))
_LINEAR = _SUMS | frozenset((
    "mul", "div", "true_divide", "neg", "mean", "sum", "squeeze", "reshape", "view", "flatten", "float", "to",
    "nanmean", "unsqueeze", "getitem",
))  # fmt: skip
_PRODUCTS = frozenset(("mul", "div", "true_divide"))
_RESIDUAL = frozenset((
    "pow", "square", "abs", "norm", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
))  # fmt: skip


class LostTerm(NamedTuple):
    """A term of a loss that is made of a gradient without a graph."""

    gradient: int  # the call that computed it
    used: int  # the call that added it


class _Step(NamedTuple):
    call: int
    is_linear: bool  # whether the loss is linear in what this call made


def lost_terms(calls: Sequence[Call], root: Read) -> Iterator[LostTerm]:
    """Walk back from a loss over what is added up in it, as far as a gradient could, and look at what has no graph."""
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
            term = _term(calls, step.call, is_linear=is_linear)
            if term is not None:
                yield term
        for read in call.reads:
            if read.leads_back and read.call != OUTSIDE and read.call not in seen:
                seen.add(read.call)
                todo.append(_Step(read.call, is_linear))


def _term(calls: Sequence[Call], used: int, *, is_linear: bool) -> LostTerm | None:
    others = [read for read in calls[used].reads if read.is_live]
    for read in calls[used].reads:
        if read.is_live or read.call == OUTSIDE:
            continue
        behind = ancestors(calls, read.call, stops_at_leaves=True)
        gradient = max((number for number in behind if calls[number].manner == "gradient"), default=None)
        if gradient is None or any(_is_same(other, one) for other in others for one in calls[gradient].wrt):
            continue
        is_on_purpose = any(calls[number].manner in ("detach", "data") for number in behind if number > gradient)
        if is_linear or (not is_on_purpose and _share_a_leaf(calls, gradient, others)):
            return LostTerm(gradient, used)
    return None


def _is_same(first: Read, second: Read) -> bool:
    if first.leaf != NO_LEAF or second.leaf != NO_LEAF:
        return first.leaf == second.leaf
    return first.call == second.call != OUTSIDE


def _share_a_leaf(calls: Sequence[Call], gradient: int, others: Sequence[Read]) -> bool:
    """Tell whether a gradient was taken in the same network that the rest comes from."""
    behind = _leaves(calls, ancestors(calls, gradient, stops_at_leaves=True))
    return any(behind & _leaves(calls, ancestors(calls, other.call, stops_at_leaves=True)) for other in others)


def _leaves(calls: Sequence[Call], numbers: set[int]) -> set[int]:
    return {read.leaf for number in numbers for read in calls[number].reads if read.leaf != NO_LEAF and read.is_live}
