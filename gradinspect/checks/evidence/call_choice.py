"""Which calls of a program `check` observes; `watch_window` says when there were enough.

It counts backward() calls. The autograd.grad() calls before one belong to it: a gradient penalty, a residual, an inner
loop. A solver may make thousands of those, so only the first few are observed. A program that makes no other calls, for
example a sampler, is eventually stopped, because it could run for hours. Where an optimizer is to step yet, it may be
an evaluation before the training, and that is waited for longer.

Calls that repeat others are only counted: NOTE [Repeated calls] in `watch_window`.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import islice
from types import FrameType
from typing import Any

import torch
from torch import nn

from gradinspect.checks.evidence.divergence import loss_of
from gradinspect.checks.evidence.logs import ProgramLogs
from gradinspect.checks.evidence.watch_window import WatchWindow
from gradinspect.recording.frames import line_at, user_frames
from gradinspect.request import Request
from gradinspect.runner.engine import CallCounts, EngineCall
from gradinspect.torch_api.modes import Unobserved
from gradinspect.torch_api.nodes import few_leaves_of
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.weak import HiddenRef
from gradinspect.units import format_count

MAX_GRADS_OBSERVED = 16  # before each backward() call
MAX_GRADS_ALONE = 256  # without a backward() call between them
MAX_GRADS_BEFORE_STEPS = 5_000  # the same, while an optimizer has not stepped
MAX_NODES = 2_000  # of a graph in which parameters are looked for
MOST_OTHERS = 8  # calls whose loss has other parameters: a program may make new ones for each step
CALLS_BETWEEN_LOOKS = 16  # at the value of a loss that a device has: reading it waits for the device


class CallChoice:
    """Chooses calls as they come."""

    def __init__(self, request: Request) -> None:
        """Choose calls, starting with the requested one."""
        self.observed = CallCounts()
        self._first_grad = request.grad
        self._first_backward = request.backward or 1
        self._num_backwards = 0
        self._grads_in_a_row = 0
        self.num_passed_over = 0  # calls of autograd.grad() that were too many before a backward() call
        self.has_given_up = False  # the program was left, because it made too many calls of autograd.grad()

    def is_exhausted(self, is_step_awaited: Callable[[], bool]) -> bool:
        """Return whether the program makes autograd.grad() calls only, and made too many.

        Args:
            is_step_awaited: Whether an optimizer exists that has not stepped; asked where that decides.
        """
        if self._first_grad is not None or self._grads_in_a_row < MAX_GRADS_ALONE:
            return False
        self.has_given_up = self._grads_in_a_row >= MAX_GRADS_BEFORE_STEPS or not is_step_awaited()
        return self.has_given_up

    @property
    def saw_all(self) -> bool:
        """Whether no call was one too many."""
        return not (self.has_given_up or self.num_passed_over)

    def notes(self) -> Iterator[str]:
        """Say what is not known because of that."""
        if self.has_given_up:
            yield f"Not checked: what comes after {self._grads_in_a_row:,} autograd.grad() calls in a row."
        elif self.num_passed_over:
            number = format_count(self.num_passed_over, "call")
            yield f"Not checked: {number} of autograd.grad(), after {MAX_GRADS_OBSERVED} in a row."

    def counts(self, call: EngineCall) -> bool:
        """Return whether a call is of the kind that is counted."""
        return (call.kind == "grad") == (self._first_grad is not None)

    def wants(self, call: EngineCall) -> bool:
        """Return whether to observe a call that is about to start. Must be called once per call."""
        if call.kind == "backward":
            self._num_backwards, self._grads_in_a_row = call.number, 0
            return self._first_grad is None and call.number >= self._first_backward
        if self._first_grad is not None:
            return call.number >= self._first_grad
        self._grads_in_a_row += 1
        if self._num_backwards < self._first_backward - 1:
            return False
        self.num_passed_over += self._grads_in_a_row > MAX_GRADS_OBSERVED
        return self._grads_in_a_row <= MAX_GRADS_OBSERVED


class RepeatedCalls:
    """Lets calls that repeat others pass by, and notices what may be new. NOTE [Repeated calls] in `watch_window`."""

    def __init__(self, window: WatchWindow, logs: ProgramLogs, on_time: Callable[[], None]) -> None:
        """Watch closely at first.

        Args:
            window: How long is watched.
            logs: What rests meanwhile.
            on_time: Called when another training gets time of its own.
        """
        self.is_resting = False
        self._window = window
        self._logs = logs
        self._on_time = on_time
        self._lines: set[Hashable] = set()  # on which backward calls were made
        self._trainings: set[Hashable] = set()  # lines on which optimizers were made, or stepped for the first time
        self._parameters = SeenParameters()
        self._has_switched = False  # the mode of a module was set since the last call
        logs.training.on_mode = self._switched
        logs.training.on_change = self._changed
        logs.calls.on_evaluation = self._changed

    def passes(self, call: EngineCall) -> bool:
        """Return whether a call that is about to start is only counted. Must be called once per call."""
        if call.kind != "backward":
            return self.is_resting
        lines = lines_of(call.frame)
        is_known = lines in self._lines
        self._lines.add(lines)
        has_switched, self._has_switched = self._has_switched, False
        if not self.is_resting and not (is_known and self._window.may_rest() and self._logs.rest()):
            return False
        self.is_resting = True
        self._window.repeated()
        if self._parameters.has_others(_leaves_of(call)) or not is_known:
            self._begin_training()
        elif has_switched or not self._is_finite(call):
            self._window.watch_briefly()
        if self._window.must_watch:
            self.wake()
        return True

    def watched(self, leaves: Iterable[Any]) -> None:
        """Note the leaves of a call that is watched closely."""
        self._parameters.has_others(leaves)

    def new_optimizer(self, frame: FrameType | None) -> None:
        """Note that an optimizer was made, or has stepped for the first time: perhaps in another training."""
        lines = lines_of(frame)
        if lines not in self._trainings:
            self._trainings.add(lines)
            self._begin_training()
        else:
            self._changed()

    def wake(self) -> None:
        """Watch closely again."""
        if self.is_resting:
            self.is_resting = False
            self._logs.wake()

    def _begin_training(self) -> None:
        if self._window.begin_training():
            self._on_time()
        self.wake()

    def _switched(self) -> None:
        self._has_switched = True

    def _changed(self) -> None:
        """Watch the next few calls, and what comes before them."""
        if self.is_resting:
            self._window.watch_briefly()
            self.wake()

    def _is_finite(self, call: EngineCall) -> bool:
        """Return whether the loss is a finite number, as far as that is cheap to know."""
        loss = loss_of(call)
        if loss is None or (not loss.is_cpu and self._window.num_repeated % CALLS_BETWEEN_LOOKS):
            return True
        with Unobserved():
            return bool(ops.item(ops.isfinite(ops.detach(loss))))


class SeenParameters:
    """Knows the parameters that losses were computed from: another model may be trained on the same line."""

    def __init__(self) -> None:
        """Start before the first call."""
        self._seen: dict[int, HiddenRef] = {}
        self._num_others = 0

    def has_others(self, leaves: Iterable[Any]) -> bool:
        """Return whether a loss is computed from others than those before it, given the leaves of its graph."""
        if self._num_others > MOST_OTHERS:
            return False
        new = [leaf for leaf in leaves if not self._is_seen(leaf) and isinstance(leaf, nn.Parameter)]
        self._seen |= {id(leaf): HiddenRef(leaf) for leaf in new}
        self._num_others += bool(new)
        return bool(new)

    def _is_seen(self, leaf: Any) -> bool:
        seen = self._seen.get(id(leaf))
        return seen is not None and seen() is leaf


def _leaves_of(call: EngineCall) -> list[Any]:
    """List the leaves of a call that is not walked, as far as that is cheap."""
    with Unobserved():
        return [
            leaf for output in call.outputs if type(output) is torch.Tensor for leaf in few_leaves_of(output, MAX_NODES)
        ]


def lines_of(frame: FrameType | None) -> Hashable:
    """Return the innermost lines of the program that a frame belongs to: one and its caller's."""
    return tuple((one.f_code, line_at(one)) for one in islice(user_frames(frame), 2))
