"""Follow the torch functions that other threads of the program call while one thread is recorded.

A function mode belongs to a thread. So a thread that begins meanwhile gets one of ours; one that ran before gets it for
the time of each outermost module. Listeners do not get these calls: they follow one thread.
"""

import sys
import threading
from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType, FunctionType
from typing import Any, Protocol

import torch

from gradinspect.recording.frames import caller_of_compiled
from gradinspect.recording.hooks import REGISTER_HOOK
from gradinspect.recording.threads.other_threads import OWN, Followed, OtherThreads
from gradinspect.recording.threads.threads import ThreadRecord
from gradinspect.recording.transparency.handlers import outside_handlers
from gradinspect.torch_api.dynamo import passed_by, uncompiled
from gradinspect.torch_api.engine import is_inside_backward
from gradinspect.torch_api.modes import (
    FunctionMode,
    frame_above,
    push_function_mode,
    put_function_mode,
    remove_function_mode,
    take_function_mode,
)
from gradinspect.torch_api.nodes import (
    contexts_patch,
    function_class,
    is_compiled_class,
    next_sequence_nr,
    number_of_context,
)
from gradinspect.torch_api.patching.patches import Patch
from gradinspect.torch_api.patching.replaced import NEVER_REPLACED, standing_for


class CallNotes(Protocol):
    """Notes the calls of torch functions that a mode observes."""

    def is_here(self) -> bool:
        """Return whether to note the calls of this thread."""

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType) -> None:
        """Note a call that is about to start."""

    def end(self, start: int, func: Any, result: Any, frame: FrameType) -> None:
        """Note a call of a torch function that has returned, and the number before it."""


class OtherCallMode(FunctionMode):
    """Observes every call of a torch function on a thread that is not the recorded one."""

    def __init__(self, recorder: Followed, notes: CallNotes) -> None:
        """Set up."""
        super().__init__()
        self._recorder = recorder
        self._notes = notes

    @passed_by
    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Forward a call."""
        if torch.compiler.is_compiling():
            return func(*args, **(kwargs or {}))
        is_noted = self._recorder.is_active and self._notes.is_here()
        if is_noted:
            self._notes.begin(args, kwargs or {}, frame_above())
        start = next_sequence_nr()
        asking = standing_for(func, args, kwargs, frame_above()) if id(type(func)) not in NEVER_REPLACED else None
        called = func if asking is None else asking.called  # NOTE [Replaced functions]
        try:
            result = called(*args, **kwargs) if kwargs else called(*args)
        except BaseException as error:  # NOTE [No frame of ours in a traceback] in `recorder`
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise
        if is_noted:
            self._notes.end(start, func, result, frame_above())
            if func is REGISTER_HOOK:
                self._recorder.note_hook(args)
        elif self._recorder.may_leave:  # NOTE [Leaving] in `recorder`
            call_when_returned(called, kwargs, partial(remove_function_mode, self))
        return result


class ThreadNotes:
    """Notes what a thread of the program calls: `CallNotes`."""

    def __init__(self, recorder: Followed, index: int) -> None:
        """Set up, on that thread."""
        self._recorder = recorder
        self._index = index
        self._record = recorder.others.record(index)

    def is_here(self) -> bool:
        """Return true: a mode of a thread is nowhere else."""
        return True

    @uncompiled
    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any], _frame: FrameType) -> None:
        """Note which nodes of other threads this one takes."""
        recorder = self._recorder
        self._record.latest = next_sequence_nr()
        recorder.others.num_calls += 1
        guarded(recorder.others, lambda: recorder.others.took(self._index, (args, kwargs)))

    @uncompiled
    def end(self, start: int, func: Any, result: Any, frame: FrameType) -> None:
        """Note the window of a call."""
        recorder, end = self._recorder, next_sequence_nr()
        self._record.latest = end
        if end != start:
            self._record.add_call(start, end, recorder.frames.number_of(outside_handlers(frame, func)))
            guarded(recorder.others, lambda: recorder.others.made(self._index, result))


OTHER_CALL_MODE: CodeType = OtherCallMode.__torch_function__.__code__


def call_when_returned(func: Any, keywords: dict[str, Any] | None, then: Callable[[], object]) -> None:
    """Call a function as soon as the running torch function has returned. NOTE [Leaving] in `recorder`.

    Args:
        func: The torch function.
        keywords: The keyword arguments that torch holds for the time of the call.
        then: The function.
    """
    if keywords is not None and isinstance(func, FunctionType):
        keywords[""] = _AtTheEnd(then)


class _AtTheEnd:
    """Calls a function when it is destroyed."""

    __slots__ = ("_then",)

    def __init__(self, then: Callable[[], object]) -> None:
        self._then = then

    def __del__(self) -> None:
        self._then()


class Crossings:
    """Follows on the recorded thread which tensors of other threads it takes: `recorder.CallListener`."""

    def __init__(self, others: OtherThreads) -> None:
        """Set up."""
        self._others = others

    @uncompiled
    def before(self, _func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Take part in every call; return how often the engine was called before."""
        others = self._others
        if not (others.is_strict and others.are_own(args, kwargs)):
            guarded(others, lambda: others.took(OWN, (args, kwargs)))
        return others.num_engine_calls

    @uncompiled
    def after(
        self, begun: Any, result: Any, start: int, end: int, _number: int | None, _frame: FrameType | None
    ) -> None:
        """Take the results for this thread's; what a hook has made inside a backward call is not among them."""
        others = self._others
        if start != end and others.is_strict and begun == others.num_engine_calls:
            guarded(others, lambda: others.made_here(end, result))
        elif start != end:
            guarded(others, lambda: others.made(OWN, result))


def guarded(others: OtherThreads, function: Callable[[], None]) -> None:
    """Call a function of ours; its errors must not reach the program, and what it could not see is counted."""
    try:
        function()
    except Exception:  # a tensor of the program that raises when it is looked at
        others.num_missed += 1


def applied_functions_followed(recorder: Followed) -> Patch:
    """Note which line applies each custom Function, on all threads that are followed.

    What is applied inside a backward call has the line of the call, as all that is computed there.
    """

    def noting(original: Callable[..., None]) -> Callable[..., None]:
        @uncompiled
        def note(ctx: Any, *arguments: Any, **keywords: Any) -> None:
            original(ctx, *arguments, **keywords)
            if recorder.follows_here() and not torch.compiler.is_compiling() and not is_inside_backward():
                record = recorder.followed_record()
                if record is not None:
                    number = number_of_context(ctx)
                    frame = sys._getframe(1)
                    caller = caller_of_compiled(frame) if is_compiled_class(function_class(ctx)) else frame
                    record.add_applied(number, type(ctx), recorder.frames.number_of(caller))
                    recorder.others.applied(record, ctx, number)

        return note

    return contexts_patch(noting)


def new_threads_followed(recorder: Followed) -> Patch:
    """Give threads that begin a mode of ours."""
    return Patch(threading.Thread, "_bootstrap_inner", lambda original: _followed(original, recorder))


def _followed(original: Callable[[Any], None], recorder: Followed) -> Callable[[Any], None]:
    def _bootstrap_inner(thread: Any) -> None:
        record = push_mode_of_new_thread(recorder) if recorder.follows_here() else None
        try:
            original(thread)
        finally:
            if record is not None:
                leave_thread(record)

    return _bootstrap_inner


def push_mode_of_new_thread(recorder: Followed) -> ThreadRecord:
    """Observe the torch functions that a thread calls, which has just begun, and return its record."""
    return _push(recorder, recorder.others.begin_thread())


def push_mode_here(recorder: Followed) -> None:
    """Observe the torch functions that this thread calls, for the time of a module."""
    index = recorder.others.index_here()
    recorder.others.record(index).is_visited = True
    recorder.others.be_strict()  # a thread that is followed for this time only
    _push(recorder, index)


def _push(recorder: Followed, index: int) -> ThreadRecord:
    record = recorder.others.record(index)
    record.mode = OtherCallMode(recorder, ThreadNotes(recorder, index))
    push_function_mode(record.mode)
    return record


def switch_elsewhere(recorder: Followed, *, is_compiled: bool, caller: FrameType | None) -> None:
    """Get out of the way of compiled code on this thread, which is not the recorded one, and come back."""
    record = recorder.others.found_here()
    if record is None or record.mode is None:
        return
    if is_compiled:
        record.compiled_from = next_sequence_nr()
        num_above = take_function_mode(record.mode)
        record.num_above = record.num_above if num_above is None else num_above  # None: it is off already
    elif record.num_above is not None:
        put_function_mode(record.mode, record.num_above)
        record.num_above, record.latest = None, next_sequence_nr()
        if record.latest != record.compiled_from:
            record.add_call(record.compiled_from, record.latest, recorder.frames.number_of(caller))
            recorder.others.be_strict()  # nobody has seen what it returned


def leave_thread(record: ThreadRecord) -> None:
    """Take our mode off this thread."""
    record.latest = next_sequence_nr()
    remove_function_mode(record.mode)
    record.mode = None
