"""Follow the torch functions that hooks and custom Functions call on the threads of devices, inside a backward call.

NOTE [Hooks on devices]
The engine runs the backward of device tensors on a thread of its own for each device, and takes the function modes of
its caller there. So a mode of ours is on the stack while the engine runs: what Python computes there with gradients,
in hooks, in the backward of a custom Function, in what a checkpoint computes again, makes nodes with numbers of that
thread. As on the CPU, where all of this is inside the call of `backward`, their line is that of the call.
Source: torch/csrc/autograd/engine.cpp, aten/src/ATen/ThreadLocalState.cpp, torch 2.13.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import get_ident
from types import FrameType
from typing import Any

from gradinspect.recording.threads.other_threads import Followed, OtherThreads
from gradinspect.recording.threads.thread_modes import OtherCallMode, guarded
from gradinspect.recording.threads.threads import NOWHERE, EngineRecord, ThreadRecord
from gradinspect.recording.transparency.handlers import outside_handlers
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.engine import has_device_threads, is_inside_backward
from gradinspect.torch_api.modes import push_function_mode, remove_function_mode
from gradinspect.torch_api.nodes import next_sequence_nr
from gradinspect.torch_api.patching.originals import is_grad_enabled


def engine_record(recorder: Followed, frame: FrameType | None) -> EngineRecord:
    """Describe a backward call of this thread, which is about to start."""
    index = recorder.others.index_here()
    windows = recorder.others.record(index).open_windows
    return EngineRecord(recorder.frames.number_of(outside_handlers(frame)), index, windows[-1] if windows else NOWHERE)


@uncompiled
def engine_followed(recorder: Followed | None, frame: FrameType) -> AbstractContextManager[object]:
    """Follow what a backward call computes on threads of devices, while it runs."""
    if recorder is not None:
        recorder.others.num_engine_calls += 1
    if recorder is None or not recorder.is_active or not has_device_threads():
        return nullcontext()
    notes = EngineNotes(recorder.others, engine_record(recorder, frame))
    return _pushed(recorder, notes, recorder.others.record_here(), num_nested=0)


@uncompiled
def nested_followed(recorder: Followed | None) -> AbstractContextManager[object]:
    """Follow a backward call inside another one, as a part of that one."""
    record = recorder.others.found_here() if recorder is not None and recorder.is_active else None
    if recorder is None or record is None or record.engine_notes is None or not is_inside_backward():
        return nullcontext()
    return _pushed(recorder, record.engine_notes, record, num_nested=1)


@contextmanager
def _pushed(recorder: Followed, notes: "EngineNotes", record: ThreadRecord, *, num_nested: int) -> Iterator[None]:
    mode = OtherCallMode(recorder, notes)
    before, record.engine_notes = record.engine_notes, notes
    record.num_nested += num_nested
    push_function_mode(mode)
    try:
        yield
    finally:
        remove_function_mode(mode)
        record.num_nested -= num_nested
        record.engine_notes = before


class EngineNotes:
    """Notes what a backward call computes on other threads than its own: `CallNotes`."""

    def __init__(self, others: OtherThreads, call: EngineRecord) -> None:
        """Set up, on the thread that makes the call."""
        self._others = others
        self._call = call
        self._thread = get_ident()

    def is_here(self) -> bool:
        """Return whether this is not the thread of the call, whose windows say all."""
        return get_ident() != self._thread

    @uncompiled
    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any], _frame: FrameType) -> None:
        """Note which nodes of other threads a call takes, if it may make one."""
        others = self._others
        index = others.index_here()
        record = others.record(index)
        record.engine_notes = self
        if is_grad_enabled():
            record.note_span(number := next_sequence_nr(), number, self._call)
            guarded(others, lambda: others.took(index, (args, kwargs)))

    @uncompiled
    def end(self, start: int, _func: Any, result: Any, _frame: FrameType) -> None:
        """Note what it has made."""
        end = next_sequence_nr()
        if end == start and not is_grad_enabled():
            return
        others = self._others
        index = others.index_here()
        record = others.record(index)
        record.note_span(start, end, self._call)
        if end != start:
            record.add_call(start, end, self._call.frame)
            guarded(others, lambda: others.made(index, result))
