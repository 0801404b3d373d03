"""Pixels that are divided by 255 although they lie between 0 and 1 already.

NOTE [Scaled down twice]
A division by 255 is one of bytes. Where the values lie between 0 and 1 before, and not only at both ends, as in a mask,
they were divided already, and what is left is next to nothing: all inputs look the same to the first layer, whatever
mean is subtracted from them. Noise of a 255th, which is added to an image, is divided as well; so it counts only if the
spread of what a layer is given is as small in each call.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.value_flow import ancestors
from gradinspect.checks.facts.values import RescaledInputs
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.classes import is_one_of
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 3  # of a layer
MOST_CALLS = 50
MOST_ELEMENTS = 1 << 20
LARGEST_BYTE = 255
IMAGE_AXES = 4  # examples, channels, rows and columns
MOST_SPREAD = 0.05  # a 255th, divided by the standard deviation of the pixels
SCALES = (LARGEST_BYTE, 1 / LARGEST_BYTE)
_LAYERS = frozenset(("linear", "conv1d", "conv2d", "conv3d"))
_DIVISIONS = frozenset(("div", "divide", "truediv", "true_divide", "itruediv", "idiv"))
_PRODUCTS = frozenset(("mul", "multiply", "rmul", "imul"))


class _Layer(Struct):
    """All calls of a layer on a line."""

    divided: int | None = None  # the frame
    spread: float = 0.0
    num_calls: int = 0
    is_other: bool = False


class RescaledLog:
    """Looks at divisions, and at what layers are given. NOTE [Scaled down twice]."""

    functions = _LAYERS | _DIVISIONS | _PRODUCTS

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls between them; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "input that is divided by 255", MOST_ELEMENTS)
        self._most: dict[int | None, float] = {}  # line of a division -> the largest value before it
        self._layers: dict[int | None, _Layer] = {}

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if function not in _LAYERS:
            if len(args) > 1 and _is_scale(function, args[1]) and number is not None:
                self._divided(args[0], number)
        elif self._most:
            self._used(argument(args, kwargs, 0, "input"), number)

    def _divided(self, data: Any, number: int) -> None:
        ends = self._ends(data, number)
        if ends is not None:
            is_scaled = ends[0] >= 0 and ends[1] <= 1 and ends[2]
            self._most[number] = max(self._most.get(number, 0.0), ends[1] if is_scaled else LARGEST_BYTE)

    def _used(self, data: Any, number: int | None) -> None:
        if isinstance(data, torch.Tensor) and data.requires_grad:
            return  # of another layer on the same line
        seen = self._layers.setdefault(number, _Layer())
        if seen.is_other or seen.num_calls >= MOST_CALLS:
            return
        ends = self._ends(data, number)
        behind = () if ends is None else ancestors(self._flow.calls, self._flow.read(data).call)
        lines = {self._flow.calls[one].frame for one in behind}
        found = next((line for line, most in self._most.items() if most <= 1 and line in lines), None)
        spread = LARGEST_BYTE if found is None else _spread(data)
        if spread > MOST_SPREAD:
            seen.is_other = True
            return
        seen.divided, seen.num_calls, seen.spread = found, seen.num_calls + 1, max(seen.spread, spread)

    def _ends(self, data: Any, number: int | None) -> tuple[float, float, bool] | None:
        """Return the least and the largest value of data, and whether there is one well in between."""
        if type(data) is not torch.Tensor or data.requires_grad or not data.is_cpu or not ops.is_floating_point(data):
            return None
        if not self._limit.allows(data, number):
            return None
        with unobserved():
            least, most = ops.item(ops.min(data)), ops.item(ops.max(data))
            between = ops.logical_and(ops.gt(data, least), ops.lt(data, most))
            has_between = least < most and bool(ops.item(ops.any(between)))
        return float(least), float(most), has_between

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[RescaledInputs]:
        """Yield the divisions of what each call of a layer was given."""
        divided = set[int | None]()
        for number, seen in self._layers.items():
            if not seen.is_other and seen.num_calls >= LEAST_CALLS and seen.divided not in divided:
                divided.add(seen.divided)
                yield RescaledInputs(
                    most=self._most[seen.divided], spread=seen.spread, num_calls=seen.num_calls,
                    divided=frame_of(seen.divided), used=frame_of(number),
                )  # fmt: skip


def _spread(data: torch.Tensor) -> float:
    """Return how far the values of data lie apart; those of each channel, as each may have a mean of its own."""
    with unobserved():
        is_image = ops.dim(data) == IMAGE_AXES
        values = ops.flatten(ops.transpose(data, 0, 1), 1) if is_image else ops.reshape(data, (-1,))
        return float(ops.item(ops.max(ops.sub(ops.amax(values, -1), ops.amin(values, -1)))))


def _is_scale(function: str, factor: Any) -> bool:
    return is_one_of(factor, (int, float)) and bool(factor == SCALES[function in _PRODUCTS])
