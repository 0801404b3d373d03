"""Losses that are made worse by each step, as their sign is the wrong one.

NOTE [The sign of a loss]
A loss function returns nothing below 0, the logarithm of a probability nothing above; ctc_loss goes below 0 where
its scores are no log-probabilities. So where the whole loss is one of the two, perhaps scaled, its sign says in which
direction a step goes, whatever numbers it was multiplied with. An adversary makes a loss worse on purpose: it changes
an input, or beside others that make it better. So it counts where all that backward reaches are parameters, no
optimizer maximizes, and each backward of the program is like that.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from msgspec import Struct
from torch import nn
from torch.optim.optimizer import Optimizer

from gradinspect.checks.evidence.objectives.regressions import SAME_VALUES
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import is_small_and_readable
from gradinspect.checks.facts.targets import WrongSign
from gradinspect.checks.facts.value_flow import NO_LEAF, OUTSIDE, Call, Read, ancestors
from gradinspect.graph import Frame
from gradinspect.recording.names.instances import live_optimizers
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 3
MOST_CALLS = 20
_SCALES = SAME_VALUES - {"detach", "getitem"} | frozenset((
    "neg", "mul", "rmul", "imul", "div", "truediv", "true_divide", "mean", "sum", "negative", "multiply",
))  # fmt: skip
_POSITIVE = frozenset(("cross_entropy", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
_CHOSEN = frozenset(("getitem", "gather", "squeeze", "nll_loss"))
_NEGATIVE = frozenset(("log_softmax", "logsigmoid"))


class _Seen(Struct):
    """All backward calls on a line."""

    op: str = ""
    made: int | None = None
    num_calls: int = 0
    value: float = 0.0
    is_wrong: bool = True


class SignLog:
    """Looks at losses before backward. NOTE [The sign of a loss]."""

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made them."""
        self._flow = flow
        self._seen: dict[Frame | None, _Seen] = {}

    def begin(self, outputs: Sequence[Any], backward: Frame | None) -> None:
        """Look at a call that is about to start."""
        seen = self._seen.get(backward)
        if seen is not None and (not seen.is_wrong or seen.num_calls >= MOST_CALLS):
            return
        output = outputs[0] if len(outputs) == 1 else None
        end = self._end(output) if type(output) is torch.Tensor else None
        if seen is None:
            seen = self._seen[backward] = _Seen()
            if end is not None:
                seen.op, seen.made = self._flow.calls[end].name.strip("_"), self._flow.calls[end].frame
        seen.is_wrong = seen.is_wrong and end is not None and self._is_worse(output, end, seen)
        seen.num_calls += 1

    def _end(self, output: torch.Tensor) -> int | None:
        """Return the loss, or the logarithm of a probability, that is all that an output consists of."""
        read = self._flow.read(output)
        calls, number = self._flow.calls, read.call
        while number != OUTSIDE and calls[number].name.strip("_") in _SCALES:
            live = [one for one in calls[number].reads if one.is_live]
            if len(live) != 1 or len(calls[number].reads) > 1 or not live[0].leads_back:
                return None
            number = live[0].call
        if number == OUTSIDE:
            return None
        return number if calls[number].name in _POSITIVE or _is_chosen(calls, number) else None

    def _is_worse(self, output: Any, end: int, seen: _Seen) -> bool:
        if not output.is_cpu or ops.numel(output) != 1 or not is_small_and_readable(output, 1):
            return False
        with unobserved():
            seen.value = float(ops.item(ops.detach(output)))
        if not seen.value < 0:  # also NaN
            return False
        return self._trains_parameters(end) and not any(maximizes(one) for one in live_optimizers())

    def _trains_parameters(self, call: int) -> bool:
        """Return whether all leaves are parameters; an adversary changes an input."""
        calls = self._flow.calls
        behind = ancestors(calls, call, stops_at_leaves=True)
        leaves = {one.leaf for number in behind for one in calls[number].reads if one.leaf != NO_LEAF and one.is_live}
        found = [self._flow.leaf(number) for number in leaves]
        return bool(found) and all(one is None or isinstance(one, nn.Parameter) for one in found)

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[WrongSign]:
        """Yield the lines of backward where it was so in every call, if they are all of the program."""
        if not all(one.is_wrong for one in self._seen.values()):
            return
        for backward, seen in self._seen.items():
            if seen.num_calls >= LEAST_CALLS:
                yield WrongSign(
                    op=seen.op, value=seen.value, num_calls=seen.num_calls, made=frame_of(seen.made), backward=backward
                )


def _is_chosen(calls: Sequence[Call], number: int) -> bool:
    """Return whether a call selects from the logarithms of probabilities."""
    read: Read | None = Read(number, is_live=True)
    while read is not None and read.call != OUTSIDE:
        call = calls[read.call]
        if call.name in _NEGATIVE:
            return read.call != number
        if call.name.strip("_") not in _CHOSEN or not call.reads:
            return False
        read = next((one for one in call.reads if one.leads_back), None)
    return False


def maximizes(optimizer: Optimizer) -> bool:
    """Return whether an optimizer makes its loss larger."""
    return any(group.get("maximize") for group in optimizer.param_groups)
