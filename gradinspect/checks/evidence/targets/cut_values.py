"""Targets of a regression whose fractions were cut off, as they went through whole numbers.

NOTE [What cutting costs]
`torch.tensor(prices, dtype=torch.long)` makes 0 of all that is between -1 and 1. Whole numbers are often meant: a
count, a class, a year. So only what a regression compares counts, and only where the fractions that were cut off are
large beside the spread of the values: half a dollar of a price of hundreds is rounding. A draw that is scaled and cut,
as `(torch.rand(n) * 5).long()`, is one of whole numbers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.objectives.regressions import REGRESSIONS, SAME_VALUES
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.targets import CutTargets
from gradinspect.checks.facts.value_flow import OUTSIDE, first_behind
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.classes import module_of
from gradinspect.torch_api.patching.originals import ops

LEAST_VALUES = 16
LEAST_CALLS = 3  # of a loss on a line
MOST_CALLS = 6
LARGE = 0.25  # the mean of the fractions, beside the standard deviation
MOST_ELEMENTS = 65_536
MOST_CASTS = 20_000
_WHOLE = frozenset((torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8))
_METHODS = {"long": torch.int64, "int": torch.int32, "short": torch.int16}
_MAKERS = frozenset(("tensor", "as_tensor"))
_SCALES = frozenset(("mul", "rmul", "div", "truediv", "add", "radd", "sub", "clamp", "abs"))
_DRAWS = frozenset(("rand", "randn", "rand_like", "randn_like", "uniform", "normal"))
_PASSING = SAME_VALUES | frozenset(("stack", "cat", "index_select", "double", "type", "select", "unbind", "split"))


class _Cast(Struct):
    """All values that were cut on a line."""

    num: int = 0
    cut: float = 0.0  # the sum of what was cut off
    total: float = 0.0
    squares: float = 0.0
    least: float = 0.0
    most: float = 0.0

    def add(self, values: torch.Tensor) -> None:
        """Note some more, of float64."""
        self.cut += float(ops.item(ops.sum(ops.abs(ops.sub(values, ops.trunc(values))))))
        self.total += float(ops.item(ops.sum(values)))
        self.squares += float(ops.item(ops.sum(ops.mul(values, values))))
        least, most = (float(ops.item(one(values))) for one in (ops.min, ops.max))
        self.least, self.most = (min(least, self.least), max(most, self.most)) if self.num else (least, most)
        self.num += ops.numel(values)

    @property
    def is_large(self) -> bool:
        """Whether little is left. NOTE [What cutting costs]."""
        if self.num < LEAST_VALUES:
            return False
        variance = self.squares / self.num - (self.total / self.num) ** 2
        return variance > 0 and self.cut / self.num > LARGE * sqrt(variance)


class _Seen(Struct):
    """The calls of a loss on a line."""

    loss: str
    num_calls: int = 0
    num_cut: int = 0
    cast: int | None = None  # the frame


class CutLog:
    """Looks at casts to whole numbers, and at what regressions compare."""

    functions = REGRESSIONS | _MAKERS | frozenset(_METHODS) | frozenset(("to", "type"))

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "tensor that is cast to whole numbers", MOST_ELEMENTS)
        self._casts: dict[int | None, _Cast] = {}
        self._calls: dict[int, int | None] = {}  # the frames of the casts
        self._seen: dict[int | None, _Seen] = {}

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if function in REGRESSIONS:
            self._compare(function, args, kwargs, number)
        elif args and len(self._calls) < MOST_CASTS and _is_whole(function, args, kwargs):
            values = self._values(args[0], number)
            if values is not None and not self._is_drawn(args[0]):
                self._calls[len(self._flow.calls)] = number
                with unobserved():
                    self._casts.setdefault(number, _Cast()).add(values)

    def _values(self, given: Any, number: int | None) -> torch.Tensor | None:
        """Return what is cast as float64, if it is of floats."""
        with unobserved():
            if type(given) is torch.Tensor:
                is_cut = given.is_cpu and ops.is_floating_point(given) and ops.numel(given)
                is_cut = is_cut and self._limit.allows(given, number)
                return ops.to(ops.detach(given), torch.float64) if is_cut else None
            return _floats(given)

    def _is_drawn(self, given: Any) -> bool:
        """Return whether whole numbers are drawn so."""
        calls = self._flow.calls
        made = first_behind(calls, self._flow.read(given).call, _SCALES) if isinstance(given, torch.Tensor) else OUTSIDE
        return made != OUTSIDE and calls[made].name.strip("_") in _DRAWS

    def _compare(self, loss: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        target: Any = argument(args, kwargs, 1, "target")
        if not self._calls or type(target) is not torch.Tensor or target.requires_grad:
            return
        seen = self._seen.setdefault(number, _Seen(loss))
        if seen.num_calls >= MOST_CALLS:
            return
        seen.num_calls += 1
        cast = self._cast_behind(self._flow.read(target).call)
        if cast != OUTSIDE:
            seen.num_cut, seen.cast = seen.num_cut + 1, self._calls[cast]

    def _cast_behind(self, made: int) -> int:
        """Return the cast that a target went through, and nothing else that computes."""
        todo, seen = [made], {OUTSIDE}
        while todo:
            one = todo.pop()
            if one in self._calls:
                return one
            if one not in seen and self._flow.calls[one].name.strip("_") in _PASSING:
                todo += [read.call for read in self._flow.calls[one].reads]
            seen.add(one)
        return OUTSIDE

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[CutTargets]:
        """Yield the lines where it was so in every call."""
        for number, seen in self._seen.items():
            cast = self._casts.get(seen.cast)
            if cast is not None and seen.num_cut == seen.num_calls >= LEAST_CALLS and cast.is_large:
                yield CutTargets(
                    loss=seen.loss, least=cast.least, most=cast.most, num_values=cast.num,
                    cast=frame_of(seen.cast), used=frame_of(number),
                )  # fmt: skip


def _is_whole(function: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a call makes whole numbers of what it is given."""
    dtype = _METHODS.get(function) or kwargs.get("dtype")
    if dtype is None and function in ("to", "type"):
        dtype = next((one for one in args[1:] if isinstance(one, torch.dtype)), None)
    return dtype in _WHOLE


def _floats(given: Any) -> torch.Tensor | None:
    """Return a number, a list or an array of them as a tensor, if they are floats."""
    if module_of(type(given)) == "numpy" and getattr(getattr(given, "dtype", None), "kind", "") == "f":
        given = list(map(float, given.reshape(-1)[:MOST_ELEMENTS]))
    numbers = given if type(given) is list else [given]
    if not numbers or len(numbers) > MOST_ELEMENTS or any(type(one) is not float for one in numbers):
        return None
    return torch.tensor(numbers, dtype=torch.float64)
