"""Views that were to move an axis: the shape is the wanted one, and the elements stay in their order.

NOTE [Moved on purpose]
A view counts elements anew, in their order. It is meant where axes are split, merged or dropped. Where its result has
the same lengths in another order, or where a part of the last axis changes places with the axis before it, as the heads
of an attention do, no order of the elements fits both shapes. Lengths that are equal say nothing, so such shapes are
left alone, and so is a line where it was otherwise in any call. Images are often turned once, for all steps: one call
is enough where a convolution is given what it made, or rows of that.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.objectives.regressions import LOSSES_OF_TARGETS, SAME_VALUES
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.axes import FlattenedApart, Move, MovedByView
from gradinspect.checks.facts.value_flow import OUTSIDE, Read
from gradinspect.graph import Frame

LEAST_CALLS = 2  # of a line
_VIEWS = frozenset(("view", "reshape", "flatten"))
_CONVOLUTIONS = frozenset(("conv1d", "conv2d", "conv3d"))
_KEEPS_AXES = frozenset((
    "getitem", "stack", "unbind", "iter", "add", "sub", "mul", "div", "truediv", "float", "to", "contiguous", "detach",
    "clone", "type_as",
))  # fmt: skip
_Shape = tuple[int, ...]


class _Seen(Struct):
    """All views on a line."""

    kind: Move
    before: _Shape
    after: _Shape
    num_calls: int = 0
    is_convolved: bool = False  # what it made
    is_known: bool = False  # by a rule on the loss that it is given to, or not so in each call


class _Apart(Struct):
    """All calls of a loss on a line."""

    first: _Shape = ()
    second: _Shape = ()
    scores: int | None = None
    targets: int | None = None
    num_calls: int = 0
    is_apart: bool = True


class ViewLog:
    """Looks at shapes. NOTE [Moved on purpose]."""

    functions = _VIEWS | LOSSES_OF_TARGETS | _CONVOLUTIONS

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made the arguments."""
        self._flow = flow
        self._seen: dict[int | None, _Seen] = {}
        self._before: dict[int, _Shape] = {}  # by the call of a view, the shape of what it was taken of
        self._apart: dict[int | None, _Apart] = {}

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        given = args[0] if args else None
        if not isinstance(given, torch.Tensor):
            return
        if function in LOSSES_OF_TARGETS:
            self._compare(function, given, argument(args, kwargs, 1, "target"), number)
            return
        if function in _CONVOLUTIONS:
            self._convolved(given)
            return
        before = tuple(given.shape)
        after = _shape_after(function, before, args, kwargs) if len(before) > 1 else ()
        if not after:
            return
        self._before[len(self._flow.calls)] = before
        kind = _move(before, after) if function != "flatten" else None
        seen = self._seen.get(number)
        if seen is None and kind is not None:
            seen = self._seen[number] = _Seen(kind, before, after)
        if seen is not None:
            seen.num_calls += 1
            seen.is_known = seen.is_known or kind is None

    def _compare(self, loss: str, scores: torch.Tensor, target: Any, number: int | None) -> None:
        calls, made = self._flow.calls, self._flow.read(scores).call
        if made in self._before and calls[made].frame in self._seen:
            self._seen[calls[made].frame].is_known = True
        if type(target) is not torch.Tensor or len(scores.shape) > 2 or len(target.shape) > 2:
            return
        first, second = self._flattened(self._flow.read(scores)), self._flattened(self._flow.read(target))
        seen = self._apart.setdefault(number, _Apart())
        before, other = self._before.get(first, ()), self._before.get(second, ())
        has_classes = loss in ("cross_entropy", "nll_loss")
        before = before[:-1] if has_classes else before
        if not _are_opposite(before, other):
            seen.is_apart = False
            return
        seen.first, seen.second, seen.num_calls = before, other, seen.num_calls + 1
        seen.scores, seen.targets = calls[first].frame, calls[second].frame

    def _convolved(self, given: torch.Tensor) -> None:
        """Note that a convolution is given what a view has made."""
        made = self._view_behind(self._flow.read(given), _KEEPS_AXES) if self._seen else OUTSIDE
        if made in self._before and self._flow.calls[made].frame in self._seen:
            self._seen[self._flow.calls[made].frame].is_convolved = True

    def _flattened(self, read: Read) -> int:
        """Return the view that has flattened something, whatever casts came after it."""
        return self._view_behind(read, SAME_VALUES | {"log_softmax", "long", "sigmoid"})

    def _view_behind(self, read: Read, passed: frozenset[str]) -> int:
        """Return the view that made something, or the last call before functions that are passed by."""
        calls, number = self._flow.calls, read.call
        while number != OUTSIDE and number not in self._before and calls[number].reads:
            if calls[number].name.strip("_") not in passed:
                break
            number = calls[number].reads[0].call
        return number

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[MovedByView | FlattenedApart]:
        """Yield the lines where it was so in every call."""
        for number, seen in self._seen.items():
            if not seen.is_known and seen.num_calls >= (1 if seen.is_convolved else LEAST_CALLS):
                yield MovedByView(
                    kind=seen.kind, before=seen.before, after=seen.after, num_calls=seen.num_calls,
                    viewed=frame_of(number),
                )  # fmt: skip
        for number, apart in self._apart.items():
            if apart.is_apart and apart.num_calls >= LEAST_CALLS:
                yield FlattenedApart(
                    first=apart.first, second=apart.second, num_calls=apart.num_calls, used=frame_of(number),
                    scores=frame_of(apart.scores), targets=frame_of(apart.targets),
                )  # fmt: skip


def _shape_after(function: str, before: _Shape, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Shape:
    """Return the shape that a call has asked for, with what -1 stands for; nothing if that is not known."""
    if function == "flatten":
        axes = (*args[1:], *kwargs.values())
        return (_product(before),) if axes in {(), (0,), (0, -1)} else ()
    wanted = kwargs.get("shape", args[1:])
    if len(wanted) == 1 and isinstance(wanted[0], tuple | list):
        wanted = wanted[0]
    if not wanted or not all(type(one) is int for one in wanted):
        return ()
    rest = -_product(wanted) if -1 in wanted else 0
    return tuple(_product(before) // rest if one == -1 and rest else one for one in wanted)


def _product(lengths: Sequence[int]) -> int:
    product = 1
    for length in lengths:
        product *= length
    return product


def _move(before: _Shape, after: _Shape) -> Move | None:
    """Return how a shape differs from another one, if no order of the elements fits both."""
    first, second = (tuple(length for length in shape if length != 1) for shape in (before, after))
    if len(first) > 2 and first != second and sorted(first) == sorted(second):
        return "moved"
    if _are_merged(after, before):
        return "split"
    return "merged" if _are_merged(before, after) else None


def _are_merged(long: _Shape, short: _Shape) -> bool:
    """Return whether [..., heads, length, features] stands beside [..., length, heads * features]."""
    if len(long) != len(short) + 1 or len(long) < 4 or long[:-3] != short[:-2]:
        return False
    heads, length, features = long[-3:]
    is_sure = length not in {heads, features} and 1 not in {heads, length, features}
    return is_sure and short[-2:] == (length, heads * features)


def _are_opposite(first: _Shape, second: _Shape) -> bool:
    """Return whether the axes of one are those of the other in another order."""
    return len(first) > 1 and first != second and sorted(first) == sorted(second)
