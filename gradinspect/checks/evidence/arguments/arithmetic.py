"""Hands sums and products to the logs that look at them: operators that every program calls most.

NOTE [Few calls for an operator]
Most of what watching a small operator costs is the number of Python functions that look at it. So what a sum or a
product has to be like, for a log to want it, is asked here, in one function for all of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from gradinspect.checks.evidence.arguments.additive_masks import AddedMaskLog
from gradinspect.checks.evidence.arguments.average_weights import AverageLog
from gradinspect.checks.evidence.arguments.rescaled_inputs import SCALES, RescaledLog
from gradinspect.checks.evidence.axes.batch_sums import BatchSumLog
from gradinspect.checks.evidence.axes.positions import PositionLog
from gradinspect.checks.evidence.axes.spread_values import SpreadLog
from gradinspect.checks.evidence.objectives.added_terms import AddedTermLog
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors

_PRODUCTS = frozenset(("mul", "multiply", "rmul", "imul", "div", "true_divide", "truediv"))
_SUMS = frozenset(("add", "radd", "iadd", "sub", "rsub", "isub"))


class ArithmeticLog:
    """Looks at sums and products of two values. NOTE [Few calls for an operator]."""

    functions = _PRODUCTS | _SUMS

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that made the values; what is too large is counted by `errors`."""
        self._masks, self._averages = AddedMaskLog(flow, errors), AverageLog(flow)
        self._positions, self._batches, self._spread = PositionLog(flow), BatchSumLog(flow), SpreadLog(flow)
        self._terms, self._rescaled = AddedTermLog(flow, errors), RescaledLog(flow, errors)
        self.users = (  # which look at other functions too
            self._masks,
            self._averages,
            self._positions,
            self._batches,
            self._spread,
            self._terms,
            self._rescaled,
        )

    def note(  # noqa: C901, PLR0912  # what is asked of each operator, inlined
        self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None
    ) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if len(args) != 2 or not isinstance(args[0], torch.Tensor):
            return
        first, second = args
        if not isinstance(second, torch.Tensor):
            if type(second) is float and 0 < second < 1:
                self._averages.note(function, args, kwargs, number)
            if function in _PRODUCTS and first.requires_grad:
                self._terms.weighed(function, second)
            elif second in SCALES:
                self._rescaled.note(function, args, kwargs, number)
            return
        num_axes, others = len(first.shape), len(second.shape)
        if function in _PRODUCTS:
            if num_axes != others:
                self._spread.note(function, args, kwargs, number)
            return
        if kwargs or self._averages.products:
            self._averages.note(function, args, kwargs, number)
        if num_axes == others == 3 and function in PositionLog.functions:
            self._positions.note(function, args, kwargs, number)
        elif not (num_axes or others):
            if first.requires_grad and second.requires_grad:
                self._terms.added(function, first, second, number)
        elif not (num_axes and others):
            self._batches.note(function, args, kwargs, number)
        is_mask = first.requires_grad != second.requires_grad and function in AddedMaskLog.functions
        if is_mask and number not in self._masks.passed:
            self._masks.note(function, args, kwargs, number)

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[object]:
        """Yield what they have seen."""
        for log in self.users:
            yield from log.facts(frame_of)
