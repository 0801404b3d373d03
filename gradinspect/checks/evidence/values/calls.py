"""Log every call of a torch function: its tensors are collected once, and passed to the other logs.

Unusual kinds of tensors may raise when inspected. That must not affect the program, so such a call is skipped.

NOTE [Inside backward]
`Tensor.backward` is itself a torch function, so the calls of its hooks are hidden from the recorder's mode, which is
forwarding it. A second mode reports only writes there: what hooks compute is not part of the program's forward pass.

NOTE [Sizes while a trace is made]
While torch.jit.trace runs, a read of `tensor.shape` is an operator of the trace. So what reads shapes does not look.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import torch
from msgspec import Struct
from torch.jit import is_tracing

from gradinspect.checks.evidence.arguments.argument_logs import ArgumentLog, ArgumentLogs, plain_name
from gradinspect.checks.evidence.arguments.evaluations import EvaluationLog
from gradinspect.checks.evidence.in_place.shared_memory import SHARING
from gradinspect.checks.evidence.in_place.targets import (
    known_targets,
    silent_targets,
    without_aliases,
    writing_operator,
    written_index,
)
from gradinspect.checks.evidence.in_place.write_access import Access, access_of
from gradinspect.checks.evidence.in_place.writes import WriteLog
from gradinspect.checks.evidence.values import torch_calls
from gradinspect.checks.evidence.values.broadcasts import BroadcastLog, growing_operator
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.dropped_results import DroppedResults, is_pure
from gradinspect.checks.evidence.values.numbers import READERS
from gradinspect.checks.evidence.values.result_states import ResultStates
from gradinspect.checks.evidence.values.torch_calls import (
    CallKind,
    GradientTouch,
    call_kind,
    function_name,
    gradient_touch,
    has_many,
    learn_names,
    tensors_in,
)
from gradinspect.checks.facts.value_flow import short_name
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.transparency.handlers import outside_handlers
from gradinspect.torch_api.modes import FunctionMode, push_function_mode, remove_function_mode
from gradinspect.torch_api.nodes import next_sequence_nr
from gradinspect.torch_api.patching.originals import is_grad_enabled, ops
from gradinspect.torch_api.patching.replaced import asking
from gradinspect.torch_api.tensors import is_leaf, plain_tensors_only, version_of

OnTouch = Callable[[GradientTouch, tuple[Any, ...], list[torch.Tensor], FrameType | None], None]
_SKIPPED, _FREEZES = CallKind.SKIPPED, CallKind.FREEZES  # Python looks up a member of an Enum slowly
_NO_VERSION = -1  # of an inference tensor
_DATA = "torch.Tensor.data.__get__"


class _Known(NamedTuple):
    """What is known about a function."""

    name: str
    kind: CallKind
    access: Access
    grows: str | None  # the operator, if broadcasting may grow its result
    touch: GradientTouch | None
    is_skipped: bool  # whether calls without keywords can be ignored
    shares: bool  # whether it gives memory away that may be written without raising a version
    is_pure: bool  # whether it has no effect if its result is dropped
    plain: str  # the last part of its name
    looked_at: tuple[ArgumentLog, ...]  # those that look at its arguments
    has_mode: bool  # whether it is what a layer calls that is switched by train() and eval()
    may_read_number: bool  # whether a number of Python may become a term of a loss there


class _Begun(Struct, frozen=True, gc=False):
    """A call that is running."""

    known: _Known
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: list[torch.Tensor]
    versions: list[int]  # of the inputs; empty if none can be written to
    contents: dict[int, torch.Tensor]  # what was there before, by the id of what may be written past autograd
    sample: Any = None  # what the log of samples has begun


class TorchCallLog:
    """Logs calls reported by the recorder while it is active. Use it as a context manager."""

    def __init__(self, recorder: Recorder, flow: Dataflow) -> None:
        """Store the recorder and the dataflow."""
        self.writes = WriteLog(recorder)
        self.broadcasts = BroadcastLog(recorder)
        self.dropped = DroppedResults(recorder)
        self.states = ResultStates()
        self.arguments = ArgumentLogs(flow, recorder.errors)
        self.on_new_graph: Callable[[FrameType | None], None] | None = None  # called when an operator reads a leaf
        self.on_touch: OnTouch | None = None  # called for each call that reads or changes a gradient
        self.on_evaluation: Callable[[], None] = lambda: None  # called where one may begin while calls are only counted
        self._sums = self.arguments.columns.sums
        self.is_resting = False  # only what freezes is noted
        self._recorder = recorder
        self._flow = flow
        self._known: dict[Any, _Known] = {}
        self._inside = _InsideBackward(self)

    def __enter__(self) -> "TorchCallLog":
        """Start listening."""
        learn_names()
        self._recorder.listeners.append(self)
        self.writes.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop listening."""
        self._recorder.dismiss(self)
        self.writes.__exit__(*error)

    def enter_backward(self) -> None:
        """Start listening inside a call of the engine. NOTE [Inside backward]."""
        if self._recorder.is_hidden:
            push_function_mode(self._inside)

    def leave_backward(self) -> None:
        """Stop listening there, unless a hook has left its own mode on top."""
        remove_function_mode(self._inside)

    def before(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Begun | None:
        """Look at the arguments of a call that is about to start; None to ignore the call."""
        try:
            known = self._known.get(func)
            if known is None:
                known = self._known[func] = _learn(func, self.arguments)
            if known.is_skipped and not kwargs:
                return None
            if self.is_resting and known.kind is not _FREEZES and not self._begins_evaluation(known, args, kwargs):
                return None
            writes = self.writes
            if writes.steps.running is not None and writes.steps.covers(sys._getframe(2)):
                return None
            inputs = tensors_in(args, kwargs) if kwargs else tensors_in(*args)
            if len(inputs) >= torch_calls.MAX_NESTED and has_many(*args):
                self._recorder.errors.pass_over(
                    "list of arguments", f"after the first {torch_calls.MAX_NESTED:,} elements"
                )
            if not known.access.arguments and "out" not in kwargs:
                return None if known.is_skipped else _Begun(known, args, kwargs, inputs, [], {})
            with plain_tensors_only():
                versions = [_NO_VERSION if ops.is_inference(tensor) else version_of(tensor) for tensor in inputs]
                may_be_silent = known.access.silent or writes.may_be_silent  # one call less for nearly all
                contents = self._contents(known, args, kwargs) if may_be_silent else {}
                sample = self.arguments.samples.begin(known.name, args[0], sys._getframe(2)) if args else None
                return _Begun(known, args, kwargs, inputs, versions, contents, sample)
        except Exception as error:
            self._recorder.errors.note(error)
            return None

    def _begins_evaluation(self, known: _Known, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Return whether to look at calls again: a layer in train mode is called on another line, without a graph."""
        if not known.has_mode or is_grad_enabled():
            return False
        number = self._recorder.frames.number_of(sys._getframe(2))
        if not self.arguments.evaluations.is_new(known.plain, args, kwargs, number):
            return False
        self.on_evaluation()
        return not self.is_resting

    def after(  # noqa: C901, PLR0912, PLR0915  # everything about one call; a function more would cost more than all branches
        self, begun: _Begun, result: Any, start: int, end: int, number: int | None, frame: FrameType | None
    ) -> None:
        """Look at a call that has returned.

        Args:
            begun: The result of `before`.
            result: What the call returned.
            start: The next sequence number before the call.
            end: The same, after it.
            number: The user's frame in the recorder's table, if already known.
            frame: The calling frame.
        """
        known = begun.known
        try:
            with self._recorder.turn, plain_tensors_only():
                if begun.versions:
                    self._look_for_writes(begun, start, end, frame)
                if begun.sample is not None:
                    self.arguments.samples.end(begun.sample, self._recorder.frames.number_of(frame))
                if known.touch is not None and self.on_touch is not None:
                    self.on_touch(known.touch, begun.args, begun.inputs, frame)
                if known.is_pure and frame is not None and (id(frame.f_code), frame.f_lasti) not in self.dropped.used:
                    self.dropped.look(known.name, begun.inputs, result, frame)
                # NOTE [Sizes while a trace is made]
                looks = (known.grows is not None or bool(known.looked_at)) and not is_tracing()
                if end != start:
                    self.writes.shared.read(begun.inputs, end)
                    if self.dropped.data:
                        self.dropped.read(begun.inputs)
                    if looks and known.grows is not None:
                        self.broadcasts.note(known.grows, begun.inputs, end - 1, frame)
                    if self._sums and len(begun.inputs) > 1:  # rarely: a function more would cost each operator
                        self.arguments.columns.used(known.plain, begun.inputs, self._recorder.frames.number_of(frame))
                if known.shares:
                    self._look_at_memory(begun, end, frame)
                if looks and known.looked_at:
                    number = self._recorder.frames.number_of(frame) if number is None else number
                    for tensor in begun.inputs:
                        if not tensor.requires_grad:
                            kept = self._flow.made.get(id(tensor))
                            if kept is None or kept.tensor() is not tensor:
                                self._flow.enter(begun.inputs, number)  # a call of its own, if NumPy made it
                                break
                    for log in known.looked_at:
                        log.note(known.plain, begun.args, begun.kwargs, number)
                if known.kind is _SKIPPED:
                    return  # which makes no graph
                flow = self._flow
                if known.may_read_number and len(begun.inputs) < 2:
                    flow.note_numbers(frame)
                place = len(flow.calls)
                flow.note(known.name, known.kind, begun.args, begun.kwargs, begun.inputs, result, number, frame)
                if len(flow.calls) > place and self.states.left[type(result) is torch.Tensor and result.requires_grad]:
                    self.states.look(place, known.name, begun.inputs, result)
        except Exception as error:
            self._recorder.errors.note(error)
            return
        if self.on_new_graph is not None and end != start and any(map(_is_trained, begun.inputs)):
            self.on_new_graph(frame)

    def _look_at_memory(self, begun: _Begun, end: int, frame: FrameType | None) -> None:
        """Note memory that may be written without raising its version."""
        if begun.known.name == _DATA:
            self.writes.detached(begun.inputs[0])
        else:
            self.writes.shared.share(begun.inputs[0], self._recorder.frames.number_of(frame), end)

    def look_for_writes(self, begun: _Begun, start: int, end: int, frame: FrameType | None) -> None:
        """Look at a call that has returned inside backward."""
        try:
            with self._recorder.turn, plain_tensors_only():
                if begun.versions:
                    self._look_for_writes(begun, start, end, frame)
        except Exception as error:
            self._recorder.errors.note(error)
            return

    def _look_for_writes(self, begun: _Begun, start: int, end: int, frame: FrameType | None) -> None:
        """Compare versions. NOTE [Detecting writes] in `write_access`."""
        known, inputs, args, kwargs = begun.known, begun.inputs, begun.args, begun.kwargs
        changed = [one >= 0 and version_of(tensor) != one for one, tensor in zip(begun.versions, inputs, strict=True)]
        silent = set(map(id, silent_targets(known.access, args, kwargs))) if known.access.silent else ()
        places = [place for place, tensor in enumerate(inputs) if changed[place] or (silent and id(tensor) in silent)]
        if len(places) > 1 and not silent:
            places = without_aliases(places, inputs, known_targets(known.name, known.kind, args, kwargs))
        if places:
            contents = begun.contents
            targets = [(inputs[place], begun.versions[place], contents.get(id(inputs[place]))) for place in places]
            index, op = written_index(known.name, args), writing_operator(known.name, args, kwargs)
            self.writes.note(op, start, end, frame, targets, index=index)

    def _contents(self, known: _Known, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, torch.Tensor]:
        """Copy what a call may write past autograd."""
        if known.access.silent:
            return self.writes.contents(silent_targets(known.access, args, kwargs), is_silent=True)
        targets = known_targets(known.name, known.kind, args, kwargs)
        return self.writes.contents(targets, written_index(known.name, args), is_silent=False)


class _InsideBackward(FunctionMode):
    """Reports writes. NOTE [Inside backward]."""

    def __init__(self, log: TorchCallLog) -> None:
        super().__init__()
        self._log = log

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if torch.compiler.is_compiling():
            return func(*args, **(kwargs or {}))
        called, func = asking(func, args, kwargs, sys._getframe(1))
        begun = self._log.before(func, args, kwargs or {})
        start = next_sequence_nr()
        result = called(*args, **(kwargs or {}))
        if begun is not None:
            self._log.look_for_writes(begun, start, next_sequence_nr(), outside_handlers(sys._getframe(1), func))
        return result


def _learn(func: Any, arguments: ArgumentLogs) -> _Known:
    name = function_name(func)
    kind, access = call_kind(name), access_of(func, name)
    touch = gradient_touch(name)
    is_skipped = kind is CallKind.SKIPPED and not access.arguments and touch is None
    shares = name == _DATA or (kind is CallKind.TO_PYTHON and short_name(name) in SHARING)
    grows, looked_at = growing_operator(name), arguments.of(name)
    return _Known(
        name, kind, access, grows, touch, is_skipped, shares, is_pure(name), plain_name(name), looked_at,
        plain_name(name) in EvaluationLog.layers, name in READERS,
    )  # fmt: skip


def _is_trained(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a leaf that requires grad, so that what reads it begins a graph."""
    with plain_tensors_only():
        return tensor.requires_grad and is_leaf(tensor)
