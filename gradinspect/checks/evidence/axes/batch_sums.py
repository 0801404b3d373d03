"""Sums over a whole batch that are added to values of each example, which then count as often as there are examples.

NOTE [A sum for each example]
The log-determinant of a flow, or the divergence of a code, is a sum over the features of each example. Without an axis
`s.sum()` is one number for the whole batch, and torch adds it to each of the values of the examples. It is meant where
a penalty of weights is added; what was computed from the batch, with as many rows as there are examples, is not.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.axes import BatchSum
from gradinspect.checks.facts.value_flow import OUTSIDE, calls_behind
from gradinspect.graph import Frame

LEAST_CALLS = 3  # of a line
MOST_CALLS = 20
_ADDS = frozenset(("add", "radd", "iadd", "sub", "rsub", "isub"))
_THROUGH = _ADDS | frozenset(("mul", "rmul", "neg", "div", "truediv"))


class _Seen(Struct):
    """All sums on a line."""

    shape: tuple[int, ...] = ()
    summed: int | None = None
    num_calls: int = 0
    is_of_batch: bool = True


class BatchSumLog:
    """Looks at what is added to values of each example. NOTE [A sum for each example]."""

    functions = _ADDS | frozenset(("sum",))

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made the terms."""
        self._flow = flow
        self._sums: dict[int, tuple[int, ...]] = {}  # by the call of a whole sum, the shape of what was summed
        self._seen: dict[int | None, _Seen] = {}

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if not args or type(args[0]) is not torch.Tensor:
            return
        if function == "sum":
            if len(args) == 1 and "dim" not in kwargs and args[0].requires_grad and len(args[0].shape) > 1:
                self._sums[len(self._flow.calls)] = tuple(args[0].shape)
        elif self._sums and len(args) == 2 and type(args[1]) is torch.Tensor:
            one, many = args if len(args[0].shape) == 0 else args[::-1]
            if len(one.shape) == 0 and len(many.shape) == 1 and one.requires_grad:
                self._add(one, many, number)

    def _add(self, one: torch.Tensor, many: torch.Tensor, number: int | None) -> None:
        seen = self._seen.setdefault(number, _Seen())
        if not seen.is_of_batch or seen.num_calls >= MOST_CALLS:
            return
        seen.num_calls += 1
        behind = calls_behind(self._flow.calls, self._flow.read(one), _THROUGH)
        summed = next((call for call in behind if self._sums.get(call, ())[:1] == many.shape[:1]), OUTSIDE)
        seen.is_of_batch = summed != OUTSIDE and many.shape[0] > 1
        if seen.is_of_batch:
            seen.shape, seen.summed = self._sums[summed], self._flow.calls[summed].frame

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[BatchSum]:
        """Yield the lines where it was so in every call."""
        for number, seen in self._seen.items():
            if seen.is_of_batch and seen.num_calls >= LEAST_CALLS:
                yield BatchSum(
                    shape=seen.shape, num_calls=seen.num_calls, summed=frame_of(seen.summed), used=frame_of(number)
                )
