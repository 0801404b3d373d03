"""Intercept each call of the program to torch's backward engine before it starts."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from os import getpid
from threading import Lock, get_ident
from types import FrameType
from typing import Any, NamedTuple, Self, TypeVar

import torch

from gradinspect.graph import CallKind
from gradinspect.isolation import OwnBuiltins
from gradinspect.recording.frames import user_frames
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.threads.engine_calls import engine_followed, nested_followed
from gradinspect.recording.threads.engine_nodes import watch_engine
from gradinspect.recording.transparency.collector import collector_paused
from gradinspect.recording.transparency.handlers import outside_handlers
from gradinspect.runner.recursion import room_for_us
from gradinspect.runner.signals import held_signals
from gradinspect.torch_api.distributed.pipelines import is_learning_shapes
from gradinspect.torch_api.dynamo import passed_by, uncompiled
from gradinspect.torch_api.engine import intercepted_engine, is_inside_backward
from gradinspect.torch_api.patching.interruptions import pass_on_interruption
from gradinspect.torch_api.patching.turns import turns
from gradinspect.torch_api.tensors import is_functional, plain_tensors_only, unwrapped
from gradinspect.units import call_name, format_count

_Returned = TypeVar("_Returned")
PATIENCE_S = 1.0  # for calls of other threads to end; halved each time that it was not enough
_intercepting: list[int] = []  # the threads that observe their own calls alone


@dataclass(frozen=True, kw_only=True)
class EngineCall:
    """A call of the engine that is about to start."""

    kind: CallKind
    number: int  # 1 for the program's first one of its kind
    earlier_grads: int = 0  # calls of the other kind, autograd.grad, before a backward
    outputs: tuple[Any, ...]  # tensors or GradientEdges
    gradients: tuple[Any, ...] = ()  # of the outputs
    inputs: tuple[Any, ...] = ()  # tensors or GradientEdges; empty: every leaf
    keeps_graph: bool = False
    creates_graph: bool = False
    allows_unused: bool = True  # inputs that the graph does not reach
    frame: FrameType | None  # the user's line
    caller: FrameType  # who called the engine: torch itself

    @property
    def name(self) -> str:
        """Return its unique name: `backward #2`."""
        return call_name(self.kind, self.number)


@dataclass
class CallCounts:
    """How often a program has called the engine."""

    backwards: int = 0
    grads: int = 0
    captured: int = (
        0  # those of them that were not looked at, NOTE [Captured kernels]: `torch_api.devices.graph_capture`
    )

    def add(self, kind: CallKind) -> None:
        """Count one more call."""
        if kind == "grad":
            self.grads += 1
        else:
            self.backwards += 1


class CallEnd(NamedTuple):
    """What to do when a run of the engine has ended."""

    finish: Callable[[Any], None]  # called with what the engine returned
    abandon: Callable[[], None]  # called if the engine failed


class EngineInterceptor:
    """Reports each outermost engine call before it starts. Use it as a context manager.

    Not reported: nested calls (a reentrant checkpoint), calls that a compiler makes on fake tensors while tracing, and
    calls in a forked child.
    """

    def __init__(
        self,
        on_call: Callable[[EngineCall], "CallEnd | None"],
        *,
        sees_fake: bool = False,
        all_threads: bool = True,
        on_missed: Callable[[CallKind], None] = lambda _kind: None,
    ) -> None:
        """Set up.

        Args:
            on_call: Called before the engine starts. What it returns is called when the engine ends.
            sees_fake: Whether calls on fake tensors are made by the program.
            all_threads: Whether calls of any thread are reported, or of that one alone which begins to intercept.
            on_missed: Called for each call that is not observed, on the thread that makes it.
        """
        self._sees_fake = sees_fake
        self._all_threads = all_threads
        self._thread: int | None = None  # that intercepts
        self._lock = Lock()
        self._patience_s = PATIENCE_S
        self.num_missed = 0  # calls that were not reported: other threads made them, or made one at the same time
        self.counts = CallCounts()
        self.is_open = True  # False: nothing is reported any longer
        self.recorder: Recorder | None = None  # of what the program computes
        self._closed_in: int | None = None  # the thread whose calls are ours, and not reported
        self.problem: Exception | None = None  # an error of ours in a callback
        self._on_call = on_call
        self._on_missed = on_missed
        self.pid = getpid()  # of the process whose calls are reported
        self._patched = ExitStack()

    def __enter__(self) -> Self:
        """Intercept the engine."""
        self._thread = get_ident()
        if not self._all_threads:
            _intercepting.append(self._thread)
        self._patched.enter_context(intercepted_engine(self._wrap))
        return self

    def __exit__(self, *_error: object) -> None:
        """Restore the original."""
        self.leave()
        if not self._all_threads and self._thread is not None:
            _intercepting.remove(self._thread)

    def leave(self) -> None:
        """Restore the original; code that has wrapped ours still calls the original through it."""
        self.is_open = False
        self._patched.close()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Let our own calls of the engine pass unreported, those of this thread."""
        before, self._closed_in = self._closed_in, get_ident()
        try:
            yield
        finally:
            self._closed_in = before

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:  # noqa: C901  # what runs around one call
        @passed_by
        def _engine_run_backward(t_outputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:  # noqa: C901, PLR0912  # as above
            if not self._is_reported(t_outputs):
                with nested_followed(self.recorder):
                    return original(t_outputs, *args, **kwargs)
            end = marked = None
            number = turns.number()
            try:
                try:
                    is_observed = self._enter()
                    marked = self._watch(t_outputs, args, sys._getframe(1))
                    end = self._report(t_outputs, args, sys._getframe(1), is_observed=is_observed)
                finally:
                    turns.prepared()
                try:
                    with engine_followed(self.recorder, sys._getframe(1)):
                        result = original(t_outputs, *args, **kwargs)
                except BaseException as error:  # NOTE [No frame of ours in a traceback]
                    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                    if marked is not None:
                        self._guarded(partial(marked, None))
                    if end is not None:
                        turns.ran(self._patience_s)
                        self._guarded(end.abandon)
                    raise
                if end is not None:
                    turns.ran(self._patience_s)
                if marked is not None:
                    self._guarded(partial(marked, result))
                if end is not None:
                    self._guarded(partial(end.finish, result))
            finally:
                try:
                    turns.leave(number)
                except BaseException:  # NOTE [Handlers that raise]
                    turns.leave(number)
                    raise
            return result

        return _engine_run_backward

    @uncompiled
    def _enter(self) -> bool:
        """Wait for this call's turn, and return whether to observe it. NOTE [Turns]."""
        is_foreign = not self._all_threads and get_ident() != self._thread
        is_alone = turns.enter(self._patience_s, to_be_observed=not is_foreign)
        if not (is_alone or is_foreign):
            self._patience_s /= 2
        return is_alone or (not self._all_threads and not is_foreign)

    @uncompiled
    def _is_reported(self, outputs: Sequence[Any]) -> bool:
        """Return whether to report a call, or to count it; those of a thread that observes its own are not ours."""
        return (
            self.is_open
            and self._closed_in != get_ident()
            and (self._all_threads or get_ident() == self._thread or get_ident() not in _intercepting)
            and (self.recorder is None or self.recorder.scope.is_here())
            and not is_inside_backward()
            and getpid() == self.pid
            and not is_traced(outputs, sees_fake=self._sees_fake)
            and not is_learning_shapes(sys._getframe(1))
        )

    @uncompiled
    def _watch(
        self, outputs: Sequence[Any], arguments: Sequence[Any], caller: FrameType
    ) -> Callable[[Any], None] | None:
        """Let the recorder prepare for nodes that the call may make, and for what we read of the program's objects."""
        if self.recorder is not None and self.recorder.is_active:
            self._guarded(self.recorder.attributes.look)
        if self.recorder is None or len(arguments) < 3 or not arguments[2]:  # nearly always: no graph is made
            return None
        return self._guarded(lambda: watch_engine(self.recorder, outputs, arguments, caller))

    @uncompiled
    def _report(
        self, outputs: Sequence[Any], arguments: Sequence[Any], caller: FrameType, *, is_observed: bool
    ) -> "CallEnd | None":
        """Report a call, or count it among those that are not observed.

        Its arguments are (gradients, retain_graph, create_graph, inputs, allow_unused).
        Source: torch/autograd/__init__.py, torch 2.13.
        """
        kind: CallKind = "grad" if caller.f_code.co_name == "grad" else "backward"
        if not is_observed:
            self._miss(kind)
            return None
        with self._lock:
            self.counts.add(kind)
        call = EngineCall(
            kind=kind,
            number=self.counts.grads if kind == "grad" else self.counts.backwards,
            earlier_grads=0 if kind == "grad" else self.counts.grads,
            outputs=tuple(outputs),
            gradients=tuple(arguments[0] or ()) if arguments else (),
            inputs=tuple(arguments[3] or ()) if len(arguments) > 3 else (),
            keeps_graph=len(arguments) > 1 and bool(arguments[1]),
            creates_graph=len(arguments) > 2 and bool(arguments[2]),
            allows_unused=len(arguments) <= 4 or bool(arguments[4]),
            frame=next(user_frames(outside_handlers(caller)), None),
            caller=caller,
        )
        return self._guarded(lambda: self._on_call(call))

    def _miss(self, kind: CallKind) -> None:
        """Count a call that is not observed."""
        with self._lock:
            if self._all_threads:
                self.counts.add(kind)
            self.num_missed += 1
        self._guarded(lambda: self._on_missed(kind))

    @uncompiled
    def _guarded(self, callback: Callable[[], _Returned]) -> _Returned | None:
        """Run our own code, invisibly to the program. An error of ours is stored: the program must not see it."""
        with OwnBuiltins(), collector_paused(), room_for_us(), held_signals():
            try:
                with plain_tensors_only():
                    return callback()
            except Exception as error:
                pass_on_interruption(error)
                self.problem = self.problem or error
        return None


@uncompiled
def is_traced(outputs: Sequence[Any], *, sees_fake: bool = False) -> bool:
    """Return whether a compiler is tracing this call, on tensors without values."""
    if torch.compiler.is_compiling():
        return True
    names = ("FunctionalTensor",) if sees_fake else ("FakeTensor", "FunctionalTensor")
    tensors = (unwrapped(output) for output in outputs if isinstance(output, torch.Tensor))
    return any(type(tensor).__name__ in names or is_functional(tensor) for tensor in tensors)


def not_followed_notes(number: int) -> Iterator[str]:
    """Say how many calls of torch functions were not followed, because other threads made them."""
    if number:
        yield f"Values were not followed through {format_count(number, 'call')} of torch functions in other threads."


def missed_notes(number: int) -> Iterator[str]:
    """Say how many calls were not looked at, because other threads made them, or made one at the same time."""
    if number:
        yield (
            "1 backward call in another thread was not looked at."
            if number == 1
            else f"{number:,} backward calls in several threads were not looked at."
        )
