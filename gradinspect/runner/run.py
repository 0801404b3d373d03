"""One run of the user's program, as its observer sees it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import torch

from gradinspect.errors import GradInspectError
from gradinspect.fake.mode import FAKE_TYPES, FakeRun
from gradinspect.graph import CaptureKind, Graph
from gradinspect.recording.capture import Moment, WalkedGraph, record_graph, walk_graph
from gradinspect.recording.names.variables import Variable, variables_from
from gradinspect.recording.outputs import OutputTensor, has_graph, outputs_in
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.tensors import PLAIN_TYPES
from gradinspect.request import Request
from gradinspect.runner.engine import EngineCall, EngineInterceptor
from gradinspect.runner.process_state import ProcessState, SharedState
from gradinspect.runner.stopping import Stopper
from gradinspect.source import Program
from gradinspect.torch_api.devices.graph_capture import INSIDE, is_capturing
from gradinspect.units import format_count


class Recorded(NamedTuple):
    """A graph, and what it was recorded from."""

    graph: Graph
    outputs: list[OutputTensor]
    moment: Moment


@dataclass(kw_only=True)
class Run:
    """A program, and what an observer needs to inspect it."""

    program: Program
    base_folder: Path  # file names in the record are relative to this folder
    request: Request
    recorder: Recorder
    process_state: ProcessState | SharedState
    interceptor: EngineInterceptor
    stopper: Stopper
    fake: FakeRun | None = None
    models: tuple[Variable, ...] = ()  # that the caller of the library has named
    problem: Exception | None = None  # an error of ours; it must not reach the user's program
    has_failed: bool = False  # the program ended with an error or an exit code
    may_stop: Callable[[], bool] = lambda: True  # waits for other ranks; False: they need what this program does next
    _captured: set[str] = field(default_factory=set)  # names of calls
    is_made_up: bool = False  # we called backward, as the program calls none
    is_provisional: bool = False  # a later result may replace this one, so the program must run on

    def provisional(self) -> "Run":
        """Return this run for an observer of autograd.grad() whose result a later backward() will replace."""
        return replace(self, request=replace(self.request, grad=1), is_provisional=True)

    def stop(self, frame: FrameType) -> None:
        """Stop the program, unless it should run on.

        Raises:
            SystemExit: The stop.
        """
        if not (self.request.goes_on or self.is_provisional) and self.may_stop():
            self.stopper.stop(frame)

    def stop_after(self, seconds: float, may_stop: Callable[[], bool] = lambda: True) -> None:
        """Stop the program in a while, even if it calls nothing that is observed, unless it should run on.

        Args:
            seconds: How long it has.
            may_stop: Asked then, in a thread of ours, whether it is still to be stopped.
        """
        if not (self.request.goes_on or self.is_provisional):
            self.stopper.stop_after(seconds, may_stop)

    def stop_recording(self) -> None:
        """Stop recording forward passes, unless they may still be needed."""
        if not self.is_provisional:
            self.recorder.pause()

    def is_wanted(self, call: EngineCall) -> bool:
        """Return whether a call is the first requested one or a later one, and has a graph."""
        request = self.request
        kind, first = ("backward", request.backward or 1) if request.grad is None else ("grad", request.grad)
        is_reached = call.kind == kind and call.number >= first and request.at in (None, "backward")
        return is_reached and has_graph(call.outputs)  # otherwise the engine raises

    def is_captured(self, call: EngineCall) -> bool:
        """Return whether a call is inside a graph capture, and count it. NOTE [Captured kernels].

        Observers that compute with tensors ask first, and leave such a call alone.
        """
        if not is_capturing():
            return False
        self._captured.add(call.name)
        self.interceptor.counts.captured = len(self._captured)
        return True

    @property
    def captured_notes(self) -> tuple[str, ...]:
        """Say how many calls were inside a graph capture."""
        number = self.interceptor.counts.captured
        verb = "was" if number == 1 else "were"
        return (f"{format_count(number, 'call')} {INSIDE} {verb} not looked at.",) if number else ()

    def record_call(self, call: EngineCall, *, opens_compiled: bool = False) -> Recorded | None:
        """Record the graph of a call that is about to start; None if its root has no graph."""
        return self.record(call.kind, lambda: self.outputs_of(call), call, opens_compiled=opens_compiled)

    def walk_call(self, call: EngineCall) -> WalkedGraph | None:
        """Do the same, and keep the walk open."""
        with self.process_state.restored():
            outputs = self.outputs_of(call)
            return walk_graph(outputs, self._moment(call.kind, call, ()), self.recorder) if outputs else None

    def record(
        self, kind: CaptureKind, outputs: Callable[[], list[OutputTensor]], call: EngineCall | None = None,
        variables: tuple[Variable, ...] = (), *, opens_compiled: bool = False,
    ) -> Recorded | None:  # fmt: skip
        """Record the graph of some tensors.

        Args:
            kind: The kind of moment.
            outputs: Finds the tensors.
            call: The call that is about to start, if any.
            variables: Named tensors, in addition to those visible in the call's frame.
            opens_compiled: Whether nodes of torch.compile are followed by what is inside: the numbers of nodes are no
                longer those of the live graph.
        """
        with self.process_state.restored():
            moment = replace(self._moment(kind, call, variables), opens_compiled=opens_compiled)
            found = outputs()
            return Recorded(record_graph(found, moment, self.recorder), found, moment) if found else None

    def _moment(self, kind: CaptureKind, call: EngineCall | None, variables: tuple[Variable, ...]) -> Moment:
        return Moment(
            source=self.request.label,
            kind=kind,
            number=None if call is None else call.number,
            other_grads=self._other_grads(kind, call),
            frame=None if call is None else call.frame,
            base_folder=self.base_folder,
            variables=(*self.models, *variables),
            plain_types=FAKE_TYPES if self.request.fake else PLAIN_TYPES,
            warnings=(*(() if self.fake is None else self.fake.warnings), *self.captured_notes),
        )

    def _other_grads(self, kind: CaptureKind, call: EngineCall | None) -> int:
        """Count the autograd.grad() calls that the user could choose instead of this moment."""
        if call is not None:
            return call.earlier_grads
        return self.interceptor.counts.grads if kind == "call" else 0

    def outputs_of(self, call: EngineCall) -> list[OutputTensor]:
        """Return the tensors that a call starts from, or the requested one, with their names."""
        variables = list(variables_from(call.frame))
        if self.request.root is not None:
            return named_root(self.request.root, variables)
        names = {id(value): name for name, value in reversed(variables)}
        return [OutputTensor(names.get(id(output)), output) for output in call.outputs]


def named_root(root: str, variables: list[Variable]) -> list[OutputTensor]:
    """Find the tensor that the user named.

    Raises:
        GradInspectError: There is no such variable, or it has no graph.
    """
    found = [value for name, value in variables if name == root]
    outputs = outputs_in(found[0], root) if found else []
    if outputs:
        return outputs
    names = [name for name, value in variables if isinstance(value, torch.Tensor) and value.requires_grad]
    known = (
        f"Tensors with a graph here: {', '.join(dict.fromkeys(names[:20]))}."
        if names
        else "No tensor here has a graph."
    )
    what = "has no graph" if found else "is not a visible variable"
    raise GradInspectError(f"The root '{root}' {what}.", known)
