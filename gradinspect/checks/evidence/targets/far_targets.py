"""Targets that are so large that the steps of the optimizer do not bring the output to them.

NOTE [Far targets]
Layers begin with outputs around 0, and an optimizer such as Adam moves them by about as much in each step, whatever the
loss. Prices, watts or cents then stay out of reach: the bias alone would have to grow by thousands. What counts is not
the size of the targets, but how far the output has come: its mean is a small part of theirs in each call, and at the
pace of all calls that were seen it would take many times as many more.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, isfinite
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.objectives.regressions import REGRESSIONS
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit
from gradinspect.checks.facts.targets import FarTargets
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 30  # of a line
MOST_CALLS = 400
MOST_ELEMENTS = 262_144
LEAST_SIZE = 1_000.0  # of the mean of the targets
LEAST_OFFSET = 0.5  # of it, to their root mean square: they lie on one side of 0
MOST_SHARE = 0.05  # of the output, in each call
LEAST_MORE = 50  # times as many calls as were seen, until the output is there


class _Seen(Struct):
    """All calls of a loss on a line."""

    loss: str
    made: int | None = None
    num_calls: int = 0
    target: float = 0.0  # the sum of the means
    first: float = 0.0  # the mean of the output
    last: float = 0.0
    is_near: bool = False  # in any call


class FarTargetLog:
    """Looks at regressions. NOTE [Far targets]."""

    functions = REGRESSIONS | frozenset(("sub",))

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made the targets; what is too large is counted."""
        self._flow = flow
        self._limit = SizeLimit(errors, "target of a regression", MOST_ELEMENTS)
        self._seen: dict[int | None, _Seen] = {}

    def note(self, loss: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        first: Any = argument(args, kwargs, 0, "input")
        second: Any = argument(args, kwargs, 1, "target")
        if type(first) is not torch.Tensor or type(second) is not torch.Tensor:
            return
        if first.requires_grad == second.requires_grad or first.shape != second.shape:
            return
        output, target = (first, second) if first.requires_grad else (second, first)
        seen = self._seen.setdefault(number, _Seen(loss))
        if not seen.is_near and seen.num_calls < MOST_CALLS and self._limit.allows(target, number):
            self._compare(seen, output, target)

    def _compare(self, seen: _Seen, output: torch.Tensor, target: torch.Tensor) -> None:
        with unobserved():
            values = ops.to(target, torch.float64)
            mean = float(ops.item(ops.mean(values)))
            size = float(ops.item(ops.sqrt(ops.mean(ops.square(values)))))
            reached = float(ops.item(ops.mean(ops.to(ops.detach(output), torch.float64))))
        is_far = isfinite(size) and abs(mean) >= LEAST_SIZE and abs(mean) >= LEAST_OFFSET * size
        if not is_far or not abs(reached) <= MOST_SHARE * abs(mean):
            seen.is_near = True
            return
        seen.first = reached if seen.num_calls == 0 else seen.first
        seen.made = self._flow.made_at(target) if seen.num_calls == 0 else seen.made
        seen.last, seen.target, seen.num_calls = reached, seen.target + mean, seen.num_calls + 1

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[FarTargets]:
        """Yield the lines whose output does not come near its targets."""
        for number, seen in self._seen.items():
            if seen.is_near or seen.num_calls < LEAST_CALLS:
                continue
            target = seen.target / seen.num_calls
            moved = (seen.last - seen.first) / (seen.num_calls - 1)
            more = (target - seen.last) / moved if moved else inf
            if more < 0 or more >= LEAST_MORE * seen.num_calls:
                yield FarTargets(
                    loss=seen.loss, target=target, first=seen.first, last=seen.last, num_calls=seen.num_calls,
                    made=frame_of(seen.made), used=frame_of(number),
                )  # fmt: skip
