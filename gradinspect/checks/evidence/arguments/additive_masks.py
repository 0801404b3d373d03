"""What is to hide places from an attention, and hides none: masks of 0 and 1 that are added, fills near 0.

NOTE [One is not minus infinity]
A score that is to be hidden gets minus infinity, or a large negative number. A mask that is 1 where a token is and 0
where padding is, added to the scores, makes the weight of a token e times larger, and hides nothing. It counts where
the mask comes out of a comparison, so that it says which places count, and the sum goes to a softmax. So does a fill
with 1e-9 in the place of -1e9: a score of 0 is a score like others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.objectives.regressions import SAME_VALUES
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.axes import AddedMask
from gradinspect.checks.facts.value_flow import OUTSIDE, first_behind
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.classes import is_one_of
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 3  # of a line
MOST_CALLS = 20
MOST_ELEMENTS = 65_536
LEAST_OTHERS = 10  # sums of something else on a line, which is then not looked at
_ADDS = frozenset(("add", "radd", "iadd", "sub", "isub"))
_LARGE = 1.0  # a score that hides is less than minus this
_COMPARISONS = frozenset((
    "eq", "ne", "lt", "gt", "le", "ge", "logical_not", "invert", "bitwise_not", "logical_and", "and", "tril", "triu",
))  # fmt: skip
_THROUGH = frozenset(("view", "reshape", "float", "to", "contiguous", "squeeze"))
_PASSED = SAME_VALUES | frozenset(("rsub", "int", "long", "double", "half", "bool", "repeat"))


class _Seen(Struct):
    """All sums on a line."""

    op: str
    made: int | None
    num_calls: int = 0
    num_attended: int = 0  # that a softmax got
    is_mask: bool = True
    filled: float | None = None  # with what; None of a sum


class AddedMaskLog:
    """Looks at what a softmax gets. NOTE [One is not minus infinity]."""

    functions = _ADDS | frozenset(("softmax", "masked_fill", "where"))

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made the masks; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "mask that is added", MOST_ELEMENTS)
        self._sums: dict[int, int | None] = {}  # by the call of a sum, its line
        self._seen: dict[int | None, _Seen] = {}
        self._others: dict[int | None, int] = {}  # by the line, how often something else than a mask was added
        self.passed: set[int | None] = set()  # the lines where it was so often enough

    def note(self, function: str, args: Sequence[Any], _kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if not args or not isinstance(args[0], torch.Tensor):
            return
        if function == "softmax":
            made = self._flow.read(args[0]).call if self._sums else OUTSIDE
            while made not in self._sums and made != OUTSIDE and self._flow.calls[made].name in _THROUGH:
                made = self._flow.calls[made].reads[0].call
            if made in self._sums:
                self._seen[self._sums[made]].num_attended += 1
        elif function in ("masked_fill", "where"):
            self._fill(args[0] if function == "masked_fill" else args[1 % len(args)], args[-1], number)
        elif len(args) == 2 and isinstance(args[1], torch.Tensor) and args[0].requires_grad != args[1].requires_grad:
            mask = args[1] if args[0].requires_grad else args[0]
            self._add(function, mask, number)

    def _fill(self, scores: Any, value: Any, number: int | None) -> None:
        """Look at what the scores are filled with that are to be hidden."""
        if not is_one_of(value, (int, float)) or not isinstance(scores, torch.Tensor) or not scores.requires_grad:
            return
        seen = self._seen.setdefault(number, _Seen("fill", None))
        seen.filled = float(value)
        seen.num_calls += 1
        seen.is_mask = seen.is_mask and abs(value) <= _LARGE
        self._sums[len(self._flow.calls)] = number

    def _add(self, function: str, mask: torch.Tensor, number: int | None) -> None:
        seen = self._seen.get(number)
        if len(mask.shape) < 2 or (seen is not None and (not seen.is_mask or seen.num_calls >= MOST_CALLS)):
            return
        made = self._comparison(mask)
        if made == OUTSIDE:
            self._others[number] = self._others.get(number, 0) + 1
            if self._others[number] >= LEAST_OTHERS:
                self.passed.add(number)
            return
        if seen is None:
            seen = self._seen[number] = _Seen(function, self._flow.calls[made].frame)
        seen.num_calls += 1
        seen.is_mask = mask.is_cpu and self._limit.allows(mask, number) and _is_zero_or_one(mask)
        self._sums[len(self._flow.calls)] = number

    def _comparison(self, mask: torch.Tensor) -> int:
        calls = self._flow.calls
        number = first_behind(calls, self._flow.read(mask).call, _PASSED)
        is_comparison = number != OUTSIDE and calls[number].name.strip("_") in _COMPARISONS
        return number if is_comparison else OUTSIDE

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[AddedMask]:
        """Yield the lines where it was so in every call."""
        for number, seen in self._seen.items():
            if seen.is_mask and seen.num_calls >= LEAST_CALLS and seen.num_attended >= LEAST_CALLS:
                yield AddedMask(
                    num_calls=seen.num_calls, filled=seen.filled, made=frame_of(seen.made), used=frame_of(number)
                )


def _is_zero_or_one(mask: torch.Tensor) -> bool:
    """Return whether a mask has only these values, and both of them."""
    with unobserved():
        values = ops.to(ops.detach(mask), torch.float32)
        low, high = ops.item(ops.amin(values)), ops.item(ops.amax(values))
        return low == 0 and high == 1 and bool(ops.item(ops.all(ops.eq(values, ops.round(values)))))
