"""Targets that go on after the end of an episode, beside a flag of the batch that nothing reads.

NOTE [The end that is not read]
`reward + gamma * best(next)` counts what follows a step. After the last step of an episode nothing does, so a batch has
a flag for it, 1 where an episode has ended, and the value of what follows is multiplied by `1 - flag`. A task without
an end needs none. So a target counts where it adds something to a value of a network that is multiplied by a number
alone, and where a variable beside the loss has 0 or 1 for each example and no call has read it, in all calls.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from msgspec import Struct

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.objectives.regressions import ADDS, PRODUCTS, REGRESSIONS, SAME_VALUES
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.facts.targets import UnreadFlag
from gradinspect.checks.facts.value_flow import OUTSIDE
from gradinspect.graph import Frame
from gradinspect.recording.names.variables import variables_from
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

LEAST_CALLS = 5  # of a line
MOST_CALLS = 30
MOST_ELEMENTS = 65_536
LEAST_ROWS = 4
_CHOOSES = SAME_VALUES | frozenset(("max", "amax", "gather", "min", "minimum", "mean", "take_along_dim"))


class _Seen(Struct):
    """All calls of a loss on a line."""

    name: str = ""
    num_calls: int = 0
    num_rows: int = 0
    num_ends: int = 0
    flags: list[int] = []  # the calls that made them; from_numpy is none before it is read
    added: int | None = None
    made: int | None = None
    is_other: bool = False


class UnreadFlagLog:
    """Looks at targets. NOTE [The end that is not read]."""

    functions = REGRESSIONS

    def __init__(self, flow: Dataflow) -> None:
        """Share the calls that made targets and flags."""
        self._flow = flow
        self._seen: dict[int | None, _Seen] = {}

    def note(self, _loss: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        output: Any = argument(args, kwargs, 0, "input")
        target: Any = argument(args, kwargs, 1, "target")
        if type(output) is not torch.Tensor or type(target) is not torch.Tensor or not output.requires_grad:
            return
        seen = self._seen.setdefault(number, _Seen())
        rows = ops.numel(target)
        if seen.is_other or seen.num_calls >= MOST_CALLS or not LEAST_ROWS <= rows <= MOST_ELEMENTS:
            return
        added = self._goes_on(target)
        flag = None if added is None else self._flag(rows, seen.name)
        if added is None or flag is None:
            seen.is_other = True
            return
        seen.name, tensor = flag
        call = self._flow.read(tensor).call
        seen.flags += [] if call == OUTSIDE else [call]
        seen.added, seen.made = self._flow.calls[added].frame, self._flow.made_at(tensor)
        seen.num_calls, seen.num_rows = seen.num_calls + 1, seen.num_rows + rows
        with unobserved():
            seen.num_ends += int(ops.item(ops.count_nonzero(tensor)))

    def _goes_on(self, target: torch.Tensor) -> int | None:
        """Return the call that adds the value of what follows to a target, in all rows."""
        calls, call = self._flow.calls, self._behind(self._flow.read(target).call)
        if call == OUTSIDE or calls[call].name.strip("_") not in ADDS or len(calls[call].reads) != 2:
            return None
        products = [self._behind(read.call) for read in calls[call].reads]
        following = [one for one in products if one != OUTSIDE and calls[one].name.strip("_") in PRODUCTS]
        is_alone = len(following) == 1 and len(calls[following[0]].reads) == 1
        return call if is_alone and self._is_of_network(calls[following[0]].reads[0].call) else None

    def _behind(self, call: int) -> int:
        """Return the call that made a value, before those that pass it on."""
        calls = self._flow.calls
        while call != OUTSIDE and calls[call].name.strip("_") in SAME_VALUES and len(calls[call].reads) == 1:
            call = calls[call].reads[0].call
        return call

    def _is_of_network(self, call: int) -> bool:
        """Return whether a value was chosen from what a network returned, and nothing else has come into it."""
        calls = self._flow.calls
        while call != OUTSIDE and calls[call].name.strip("_") in _CHOOSES and calls[call].reads:
            call = calls[call].reads[0].call
        return call != OUTSIDE and calls[call].name.strip("_") in {"linear", "addmm"}

    def _flag(self, rows: int, name: str) -> tuple[str, torch.Tensor] | None:
        """Return a variable that has 0 or 1 for each row and that nothing has read; the same one in each call."""
        for variable in variables_from(sys._getframe(2)):
            value: Any = variable.value
            is_column = type(value) is torch.Tensor and not value.requires_grad and value.is_cpu
            if is_column and variable.name == (name or variable.name) and self._is_flag(value, rows):
                return variable.name, value
        return None

    def _is_flag(self, value: torch.Tensor, rows: int) -> bool:
        if ops.numel(value) != rows or max(value.shape, default=0) != rows:
            return False
        call = self._flow.read(value).call
        if self._is_read(call) if call != OUTSIDE else self._flow.is_known(value):
            return False
        with unobserved():
            is_either = ops.logical_or(ops.eq(value, 0), ops.eq(value, 1))
            return bool(ops.item(ops.all(is_either)))

    def _is_read(self, call: int) -> bool:
        """Return whether a later call has read what one made."""
        return any(read.call == call for later in self._flow.calls[call + 1 :] for read in later.reads)

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[UnreadFlag]:
        """Yield the lines where it was so in every call."""
        for number, seen in self._seen.items():
            is_sure = not seen.is_other and seen.num_calls >= LEAST_CALLS and 0 < seen.num_ends < seen.num_rows
            if is_sure and not any(map(self._is_read, seen.flags)):
                yield UnreadFlag(
                    name=seen.name, num_ends=seen.num_ends, num_rows=seen.num_rows, num_calls=seen.num_calls,
                    made=frame_of(seen.made), added=frame_of(seen.added), used=frame_of(number),
                )  # fmt: skip
