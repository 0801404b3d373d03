"""Two arguments that are the same function of the same tensors, computed twice: their difference is zero by algebra.

NOTE [The same function twice]
A policy's ratio exp(new - old) is 1 wherever both are computed from the same weights, and its gradient is zero: what
comes back through `new` and through `old` cancels. That is no accident if both sides went through the same calls, back
to the same leaves or the same call, and have equal values each time. A clamp that changes nothing is one call more, two
networks have other leaves, and two views of an image are not equal. A side without a graph is an older value, on
purpose.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, Call, ancestors
from gradinspect.checks.facts.values import SameTwice
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 3  # of a line
MOST_CALLS = 300  # of a line that are looked at
MOST_ELEMENTS = 65_536
MOST_STEPS = 3_000  # of one comparison of two histories
_COPIES = frozenset(("clone", "contiguous"))
_OF_THREE = frozenset(("triplet_margin_loss", "cosine_embedding_loss", "pairwise_distance"))  # the first two count


class _Seen(Struct):
    """All calls on a line that compare what was computed on the same two lines."""

    function: str
    sides: tuple[int, int]  # the calls that made both, the first time
    num_calls: int = 0
    are_twins: bool = True


class TwinLog:
    """Looks at functions that compare two tensors."""

    functions = frozenset((
        "sub", "subtract", "isub", "div", "divide", "true_divide", "truediv", "mse_loss", "l1_loss", "smooth_l1_loss",
        "huber_loss", "cosine_similarity",
    )) | _OF_THREE  # fmt: skip

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made them; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "pair of equal calls", MOST_ELEMENTS)
        self._seen: dict[tuple[int | None, ...], _Seen] = {}
        self.names_of: Callable[[Iterable[torch.Tensor]], tuple[str, ...]] = lambda _leaves: ()

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call, given the frame that it is on."""
        given = [one for one in (*args, *kwargs.values()) if isinstance(one, torch.Tensor)]
        given = given[:2] if function in _OF_THREE else given
        if number is None or len(given) != 2 or not all(one.requires_grad for one in given):
            return
        first, second = (self._flow.read(one) for one in given)
        if not (first.leads_back and second.leads_back) or OUTSIDE in {first.call, second.call}:
            return
        calls = self._flow.calls
        key = number, calls[first.call].frame, calls[second.call].frame
        seen = self._seen.setdefault(key, _Seen(function, (first.call, second.call)))
        if seen.are_twins and seen.num_calls < MOST_CALLS:
            seen.num_calls += 1
            is_same = first.call != second.call and is_same_function(calls, first.call, second.call)
            seen.are_twins = is_same and all(self._limit.allows(one, number) for one in given) and _are_equal(*given)

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[SameTwice]:
        """Yield the lines where it was so in every call."""
        for (number, *_), seen in self._seen.items():
            if seen.are_twins and seen.num_calls >= LEAST_CALLS:
                first, second = map(frame_of, self._flow.parted(*seen.sides))
                yield SameTwice(
                    op=seen.function,
                    num_calls=seen.num_calls,
                    names=self.names_of(self._leaves(seen.sides[0])),
                    first=first,
                    second=second,
                    compared=frame_of(number),
                )

    def _leaves(self, call: int) -> Iterator[torch.Tensor]:
        """Yield the leaves behind what a call made, as far as they are there."""
        calls = self._flow.calls
        behind = ancestors(calls, call, stops_at_leaves=True)
        numbers = {read.leaf for one in behind for read in calls[one].reads if read.leaf != NO_LEAF}
        yield from (leaf for one in sorted(numbers) if (leaf := self._flow.leaf(one)) is not None)


def _are_equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors have the same values, and more than one."""
    if first.shape != second.shape or ops.numel(first) < 2 or not (first.is_cpu and second.is_cpu):
        return False
    with unobserved():
        return bool(ops.equal(ops.detach(first), ops.detach(second)))


def is_same_function(calls: Sequence[Call], first: int, second: int) -> bool:
    """Return whether two calls went through the same calls, back to the same leaves. NOTE [The same function twice]."""
    todo, seen = [(first, second)], {(first, second)}
    while todo and len(seen) < MOST_STEPS:
        one, other = (calls[_copied(calls, number)] for number in todo.pop())
        if one.op != other.op or len(one.reads) != len(other.reads):
            return False
        for mine, its in zip(one.reads, other.reads, strict=True):
            if (mine.leaf, mine.is_live) != (its.leaf, its.is_live):
                return False
            pair = mine.call, its.call
            if mine.leads_back and pair == (OUTSIDE, OUTSIDE):
                return False  # made by what is no function of torch, perhaps of other leaves
            if mine.leaf == NO_LEAF and mine.call != its.call and pair not in seen:
                if OUTSIDE in pair:
                    return False
                seen.add(pair)
                todo.append(pair)
    return not todo


def _copied(calls: Sequence[Call], number: int) -> int:
    """Return the call whose result a call has copied, and its copy again; the call itself if it is no copy."""
    while calls[number].name in _COPIES:
        read = calls[number].reads[0]
        if not read.leads_back or read.call == OUTSIDE:
            break
        number = read.call
    return number
