"""Moving averages whose weights are the wrong way round, so that they keep next to nothing of what they were.

NOTE [The weight of the old value]
A moving average of weights keeps 0.999 of its old value and takes 0.001 of the new one. With the two exchanged it is
the new value, a step later, and averages nothing. The numbers are read where they are passed: to mul_() and add_(), to
lerp_(), or to the two products whose sum is copied into the average.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.axes import SwappedAverage
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, Read
from gradinspect.graph import Frame
from gradinspect.recording.values.storages import storage_key
from gradinspect.torch_api.patching.originals import is_grad_enabled
from gradinspect.torch_api.weak import HiddenRef

LEAST_TIMES = 4  # of a line
LEAST_WEIGHT = 0.95  # of the new value
_FRACTION = 1e-6
_PRODUCTS = frozenset(("mul", "multiply", "rmul"))


class _Scaled(NamedTuple):
    tensor: HiddenRef
    key: Any  # of its storage
    factor: float


class _Seen(Struct):
    """All updates on a line."""

    num_times: int = 0
    weight: float = 0.0
    is_swapped: bool = True


class AverageLog:
    """Looks at how averages are updated. NOTE [The weight of the old value]."""

    functions = _PRODUCTS | frozenset(("add", "lerp", "copy", "data"))

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made the products."""
        self._flow = flow
        self._last: _Scaled | None = None  # what mul_() may have written to
        self.products: dict[int, _Scaled] = {}  # by their calls
        self._sums: dict[int, tuple[_Scaled, float]] = {}  # by their calls: the old value, the weight of the new one
        self._given: dict[int, Any] = {}  # by the id of a tensor, the storage that `.data =` has given it
        self._seen: dict[int | None, _Seen] = {}

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        first = args[0] if args else None
        if not isinstance(first, torch.Tensor) or len(args) < 2:
            return
        second = args[1]
        if function in _PRODUCTS:
            if type(second) is float and 0 < second < 1 and len(first.shape) and _has_no_graph(first):
                scaled = self._last = _Scaled(HiddenRef(first), storage_key(first), second)
                self.products[len(self._flow.calls)] = scaled
        elif isinstance(second, torch.Tensor):
            if function == "lerp":
                self._lerp(first, second, argument(args, kwargs, 2, "weight"), number)
            elif function == "add":
                self._add(first, second, kwargs.get("alpha"), number)
            else:
                self._copy(function, first, second, number)

    def _lerp(self, first: torch.Tensor, second: torch.Tensor, weight: Any, number: int | None) -> None:
        if type(weight) is float and self._is_parameter(second) and _has_no_graph(first):
            self._note(number, weight)

    def _add(self, first: torch.Tensor, second: torch.Tensor, alpha: Any, number: int | None) -> None:
        last = self._last
        if type(alpha) is float and last is not None and last.tensor() is first:
            if abs(last.factor + alpha - 1) < _FRACTION and self._is_parameter(second):
                self._note(number, alpha)
            return
        if not self.products:
            return
        one, other = (self.products.get(self._flow.read(part).call) for part in (first, second))
        if one is not None and other is not None and abs(one.factor + other.factor - 1) < _FRACTION:
            old, new = (one, other) if one.factor < other.factor else (other, one)
            self._sums[len(self._flow.calls)] = old, new.factor

    def _copy(self, function: str, target: torch.Tensor, value: torch.Tensor, number: int | None) -> None:
        known = self._sums.get(self._flow.read(value).call) if self._sums else None
        if known is None:
            return
        key = storage_key(target)
        if function == "data":  # which has another storage by now
            key, self._given[id(target)] = self._given.get(id(target)), key
        if known[0].key == key is not None:
            self._note(number, known[1])

    def _note(self, number: int | None, weight: float) -> None:
        seen = self._seen.setdefault(number, _Seen())
        seen.num_times, seen.weight = seen.num_times + 1, weight
        seen.is_swapped = seen.is_swapped and LEAST_WEIGHT <= weight < 1

    def _is_parameter(self, tensor: Any) -> bool:
        """Return whether a tensor is a parameter, or shows its values."""
        if not isinstance(tensor, torch.Tensor):
            return False
        read: Read = self._flow.read(tensor)
        if tensor.requires_grad or read.leaf != NO_LEAF:
            return True
        behind = () if read.call == OUTSIDE else self._flow.calls[read.call].reads
        return any(one.leaf != NO_LEAF for one in behind)

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[SwappedAverage]:
        """Yield the lines where it was so each time."""
        for number, seen in self._seen.items():
            if seen.is_swapped and seen.num_times >= LEAST_TIMES:
                yield SwappedAverage(weight=seen.weight, num_times=seen.num_times, updated=frame_of(number))


def _has_no_graph(tensor: torch.Tensor) -> bool:
    return not (tensor.requires_grad and is_grad_enabled())
