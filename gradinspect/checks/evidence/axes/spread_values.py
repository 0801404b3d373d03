"""Values of each example that a product spreads along the rows of a square, where they belong to its columns.

NOTE [As many examples as features]
`table[t]` has one value for each example, and `table[t] * x` multiplies the columns of x by them, since shapes are
matched from the last axis. torch refuses that unless a batch has as many examples as its rows have elements. A weight
of each column is a table itself; entries that were looked up by an index for each example belong to the examples. Where
the other factor learns, as similarities of a batch with itself do, an entry may well stand for a column.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.axes import SpreadAlongRow
from gradinspect.checks.facts.value_flow import OUTSIDE
from gradinspect.graph import Frame

LEAST_CALLS = 2  # of a line
_LOOKUPS = {"getitem": 1, "gather": 2, "index_select": 2, "take": 1}  # where the index stands
_SAME = frozenset(("to", "float", "sqrt", "squeeze", "flatten", "clone", "contiguous", "rsub", "sub", "type", "half"))


class _Seen(Struct):
    """All calls on a line."""

    op: str
    shape: tuple[int, ...]
    looked_up: int | None
    num_calls: int = 0
    is_spread: bool = True


class SpreadLog:
    """Looks at products. NOTE [As many examples as features]."""

    functions = frozenset(_LOOKUPS) | frozenset(("mul", "multiply", "rmul", "imul", "div", "true_divide", "truediv"))

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made the factors."""
        self._flow = flow
        self._lookups: set[int] = set()  # calls that took a value for each element of an index
        self._seen: dict[int | None, _Seen] = {}

    def note(self, function: str, args: Sequence[Any], _kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if function in _LOOKUPS:
            index: Any = args[_LOOKUPS[function]] if len(args) > _LOOKUPS[function] else None
            if type(index) is torch.Tensor and len(index.shape) == len(args[0].shape) == 1:
                self._lookups.add(len(self._flow.calls))
            return
        if len(args) != 2 or type(args[0]) is not torch.Tensor or type(args[1]) is not torch.Tensor:
            return
        values, other = args if len(args[0].shape) < len(args[1].shape) else args[::-1]
        if len(values.shape) != 1 or len(other.shape) < 2 or values.requires_grad or other.requires_grad:
            return
        looked_up = self._looked_up(values)
        if looked_up == OUTSIDE:
            return
        shape, length = tuple(other.shape), values.shape[0]
        seen = self._seen.setdefault(number, _Seen(function, shape, self._flow.calls[looked_up].frame))
        seen.num_calls += 1
        seen.is_spread = seen.is_spread and length > 1 and shape[0] == shape[-1] == length

    def _looked_up(self, values: torch.Tensor) -> int:
        """Return the call that took values out of a table by an index for each."""
        calls, number = self._flow.calls, self._flow.read(values).call
        while number not in self._lookups and number != OUTSIDE:
            call = calls[number]
            number = call.reads[0].call if call.name.strip("_") in _SAME and len(call.reads) == 1 else OUTSIDE
        return number

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[SpreadAlongRow]:
        """Yield the lines where it was so in every call."""
        for number, seen in self._seen.items():
            if seen.is_spread and seen.num_calls >= LEAST_CALLS:
                yield SpreadAlongRow(
                    op=seen.op, shape=seen.shape, num_calls=seen.num_calls, looked_up=frame_of(seen.looked_up),
                    used=frame_of(number),
                )  # fmt: skip
