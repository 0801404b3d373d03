"""Hidden units that are saturated from the first steps on, where they are computed from the data.

NOTE [Saturated units]
Far from zero, tanh and sigmoid are flat: their gradient is nearly 0, and the layer before learns nothing. Features in
the thousands that nobody has scaled do that to the first layer, and so do large initial weights. What is looked at is
an activation of a linear layer of data, which another linear layer reads, in the first calls of its line. A hard gate
that multiplies something, and the answer of a model, may be as sure as that.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import is_small_and_readable
from gradinspect.checks.facts.dead_units import SaturatedUnits
from gradinspect.checks.facts.value_flow import OUTSIDE
from gradinspect.graph import Frame
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

MOST_ELEMENTS = 65_536
MOST_CALLS = 3  # of a line
LEAST_SHARE = 0.8  # of the units of all examples
MOST_PENDING = 64
_FLAT_FROM = {"tanh": 3.0, "sigmoid": 5.0}  # where their derivative is below 0.01


class _Layer(NamedTuple):
    """A call of a linear layer that was given data."""

    frame: int | None
    greatest: float  # of the absolute values that it was given


class _Seen(Struct):
    """The activations on a line."""

    function: str
    layer: int | None
    greatest: float
    num_calls: int = 0
    least_share: float = 1.0
    is_read: bool = False  # by another linear layer


class SaturatedLog:
    """Looks at activations of the first layer. NOTE [Saturated units]."""

    functions = frozenset(("linear", *_FLAT_FROM))

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made what is activated."""
        self._flow = flow
        self._layers: dict[int, _Layer] = {}  # by the call
        self._active: dict[int, int | None] = {}  # by the call of an activation, its line
        self._seen: dict[int | None, _Seen] = {}

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if function != "linear" and not self._layers:  # nothing to do for most of many small operators
            return
        given: Any = argument(args, kwargs, 0, "input")
        if type(given) is not torch.Tensor or not given.is_cpu or not ops.is_floating_point(given):
            return
        if function == "linear":
            self._linear(given, number)
        elif given.requires_grad:
            self._activation(function, given, number)

    def _linear(self, given: torch.Tensor, number: int | None) -> None:
        place = len(self._flow.calls)
        if given.requires_grad:
            made = self._flow.read(given).call if self._active else OUTSIDE
            if made in self._active:
                self._seen[self._active.pop(made)].is_read = True
        elif len(self._layers) < MOST_PENDING and is_small_and_readable(given, MOST_ELEMENTS):
            with unobserved():
                self._layers[place] = _Layer(number, float(ops.item(ops.max(ops.abs(given)))))

    def _activation(self, function: str, given: torch.Tensor, number: int | None) -> None:
        layer = self._layers.get(self._flow.read(given).call)
        if layer is None:
            return
        seen = self._seen.setdefault(number, _Seen(function, layer.frame, layer.greatest))
        if seen.num_calls < MOST_CALLS and is_small_and_readable(given, MOST_ELEMENTS):
            with unobserved():
                is_flat = ops.gt(ops.abs(ops.detach(given)), _FLAT_FROM[function])
                share = float(ops.item(ops.mean(ops.to(is_flat, torch.float32))))
            seen.num_calls += 1
            seen.least_share = min(seen.least_share, share)
            self._active[len(self._flow.calls)] = number

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[SaturatedUnits]:
        """Yield the activations that were saturated in each of the first calls."""
        for number, seen in self._seen.items():
            if seen.is_read and seen.num_calls >= MOST_CALLS and seen.least_share >= LEAST_SHARE:
                yield SaturatedUnits(
                    function=seen.function,
                    share=seen.least_share,
                    greatest=seen.greatest,
                    layer=frame_of(seen.layer),
                    used=frame_of(number),
                )
