"""Losses that grow from call to call, until no number can hold them.

NOTE [Divergence]
Steps that are too long look like this: each one goes further past what it is to reach than the one before, so that the
loss is multiplied by each. A loss that jumps once and comes back is none, and a loss below 0 is no distance from
anything. So it counts once it has grown a million times, in each of the last calls on its line, and to a million times
what it was in the first of all; of one that is not finite any more, fewer calls are enough.
"""

from math import isfinite
from typing import Any, NamedTuple

import torch
from msgspec import Struct

from gradinspect.graph import Frame
from gradinspect.runner.engine import EngineCall
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_RISES = 3
LEAST_GROWTH = 1e6


class RisingLoss(NamedTuple):
    """A loss that has grown in each of some calls in a row."""

    first: float
    last: float
    num_calls: int  # the first of them included


class _Losses(Struct):
    """The losses on a line."""

    start: float  # the first of all
    first: float  # of those that have grown since
    last: float
    num_rises: int = 0


class LossGrowth:
    """Follows the value of each loss. NOTE [Divergence]."""

    def __init__(self) -> None:
        """Start before the first call."""
        self._lines: dict[Frame | None, _Losses] = {}

    def note(self, call: EngineCall, backward: Frame | None) -> RisingLoss | None:
        """Look at the loss of a call that is about to start; return how it has grown, if it diverges."""
        value = _value_of(call)
        if value is None:
            return None
        known = self._lines.get(backward)
        if known is None or (isfinite(value) and not value > known.last):
            start = value if known is None else known.start
            if isfinite(value):
                self._lines[backward] = _Losses(start, value, value)
            return None
        if isfinite(value):
            known.last, known.num_rises = value, known.num_rises + 1
        is_enough = known.num_rises >= (LEAST_RISES if isfinite(value) else 1)
        is_positive = min(known.start, known.first) > 0
        if is_enough and is_positive and known.last >= LEAST_GROWTH * max(known.start, known.first):
            return RisingLoss(known.first, known.last, known.num_rises + 1)
        return None


def loss_of(call: EngineCall) -> torch.Tensor | None:
    """Return what a call starts from, if that is one number in a plain tensor, which can be read."""
    loss: Any = call.outputs[0] if len(call.outputs) == 1 else None
    is_number = type(loss) is torch.Tensor and ops.is_floating_point(loss) and ops.numel(loss) == 1
    return loss if is_number else None


def _value_of(call: EngineCall) -> float | None:
    """Read a loss; nothing is read from another device, which would have to be waited for."""
    loss = loss_of(call) if call.kind == "backward" else None
    if loss is None or not loss.is_cpu:
        return None
    with unobserved():
        return float(ops.item(ops.detach(loss)))
