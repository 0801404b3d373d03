"""Measure a program on real tensors: all that is allocated and freed on each device, by torch's profiler.

The program runs as it is. Empty ranges among the profiler's events mark what ran when: lines, modules, parts of the
step. The ledger is written when the program has ended.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Event, RLock, get_ident
from types import FrameType, TracebackType
from typing import Any, Self
from weakref import ref

import torch
from torch.autograd.profiler import profile

from gradinspect.observers.memory.allocator_replay import AllocatorReplay, Place, maker_of, with_addresses
from gradinspect.observers.memory.device_ledgers import DeviceLedgers
from gradinspect.observers.memory.pinned_memory import PINNED_NOTE, PinnedMemory
from gradinspect.observers.memory.storage_ledger import Purpose, StorageMaker
from gradinspect.observers.memory.storage_purposes import Label
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.storages import plain_tensors, storage_of
from gradinspect.torch_api.devices.own_work import own_work
from gradinspect.torch_api.devices.profiler_turn import before_profilers, start_profiler, stop_profiler
from gradinspect.torch_api.devices.profiling import (
    ProfiledEvent,
    device_label,
    profiled_events,
    profiler_range,
    require_memory_events,
    require_profiler_ranges,
)
from gradinspect.torch_api.distributed.sharding import communicates_by
from gradinspect.torch_api.dynamo import uncompiled
from gradinspect.torch_api.patching.originals import ops

_MARK = "gradinspect::memory#"
_WHOLE = f"{_MARK}whole"  # a range around the program. NOTE [Memory of devices outside operators] in `profiling`
_MIN_BYTES = 4096
_STDERR = 2
_PATIENCE_S = 5.0  # with the thread that must stop the profiler
_GLOO = (
    "This is more than the rank needs: gloo copies what it sends, and its threads free the copies, which torch's "
    "profiler does not see. Without the other ranks it can be counted exactly: --world-size."
)


def _place(storage: Any) -> Place | None:
    """Return where a storage is; None for that of a wrapper subclass, which has no memory of its own."""
    try:
        return None if storage is None else (device_label(storage.device), int(storage.data_ptr()))
    except RuntimeError:
        return None


class AllocatorTracker:
    """Measures while it is active. Use it as a context manager, around the program."""

    def __init__(
        self,
        ledgers: DeviceLedgers,
        maker: Callable[[], StorageMaker],
        recorder: Recorder,
        before: Iterable[Label] = (),
        most_marks: int | None = None,
    ) -> None:
        """Set up.

        Args:
            ledgers: What is written in the end.
            maker: Says what runs now.
            recorder: Reports each call of a torch function.
            before: What is alive already, and what its memory is for.
            most_marks: After which to stop, since the profiler keeps all that it sees; None: any number.
        """
        require_profiler_ranges()
        require_memory_events()
        self._most_marks = most_marks
        self.is_full = False  # it has stopped at that many
        self._ledgers = ledgers
        self._maker = maker
        self._recorder = recorder
        self._marks: list[StorageMaker] = []
        self._threads: list[int] = []  # of each mark: the recorder's number of its thread
        self._labels: list[list[tuple[Place, Purpose]]] = []  # of each mark: place, and what its memory is for
        self._marking = RLock()  # modules run on threads of devices too
        self._profiler: Any = None
        self._patches = ExitStack()
        self._stopped: Any = None  # the profiler, if the program has started one of its own
        self._ended_in: StorageMaker | None = None  # what ran when it did
        self._region: int | None = None  # the mark where compiled code was entered that has made no node yet
        self._is_asked_to_stop, self._has_stopped = False, Event()
        self.is_lost = False  # it could not be stopped
        self._whole: Any = None
        self._thread = get_ident()
        self._has_gloo = False
        self._freed: dict[int, list[Place]] = {}  # mark -> places of what was there before, and is no longer
        self._watched: list[Any] = []
        self._pinned = PinnedMemory(self._ended_at)
        self._made: dict[int, list[tuple[Place, int]]] = {}  # mark -> places and bytes of what was pinned
        self._before: list[tuple[Place, int, Purpose]] = []  # place, bytes
        for label in before:
            self._watch(label)

    def __enter__(self) -> Self:
        """Start the profiler."""
        _take_first_warning()  # also for what another thread frees
        profiler = profile(use_kineto=True, profile_memory=True)
        start_profiler(profiler)
        self._profiler = (
            profiler  # not before: while another recording is measured, marks of ours would be among its own
        )
        own_work.begin()
        self._whole, self._thread = profiler_range(_WHOLE), get_ident()
        self._whole.__enter__()
        self._recorder.listeners.append(self)
        self._recorder.on_module.append(self.moved_on)
        self._recorder.on_compiled.append(self._on_compiled)
        self._patches.enter_context(before_profilers(self._make_way))
        self.moved_on()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it, and write the ledger."""
        self.settle()

    def has_measured(self, steps: int) -> bool:
        """Return whether it ran until this many steps had ended."""
        last = self._ended_in
        return not self.is_lost and (last is None or (last.step, last.phase == "after step") >= (steps, True))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader of the result must know."""
        return (*((_GLOO,) if self._has_gloo else ()), *((PINNED_NOTE,) if self._pinned.was_seen else ()))

    def label(self, labels: Iterable[Label]) -> None:
        """Note what the memory of some tensors is for, from now on."""
        if self._profiler is None:
            return
        self._has_gloo = self._has_gloo or communicates_by("gloo")
        self.moved_on()
        for label in labels:
            storages = map(storage_of, plain_tensors(label.tensor))
            purpose = label.purpose
            places = (self._pinned.place_of(place) for place in map(_place, storages) if place is not None)
            self._labels[-1] += [(place, purpose) for place in places]

    @uncompiled
    def moved_on(self) -> None:
        """Mark what runs now; also between compiled parts, where memory from before is freed."""
        if self._profiler is None:
            return
        if self._is_asked_to_stop and get_ident() == self._thread:
            self._stop_early()
            return
        if len(self._marks) == self._most_marks:
            self.is_full = self._is_asked_to_stop = True
        maker = self._maker()._replace(is_compiled=self._recorder.is_in_compiled)
        with self._marking:
            self._marks.append(maker)
            self._threads.append(self._recorder.others.index_here())
            self._labels.append([])
            with profiler_range(f"{_MARK}{len(self._marks) - 1}"):
                pass
            if self._region is not None and maker.phase == "forward":
                self._began_in_region(maker)

    def _on_compiled(self, is_entered: bool, _caller: FrameType | None) -> None:  # as the recorder calls it
        """Mark where compiled code begins and ends."""
        self.moved_on()
        self._region = len(self._marks) - 1 if is_entered and self._marks else None

    def _began_in_region(self, maker: StorageMaker) -> None:
        """A step begins with the compiled code that is seen to have made its first node, maybe only at its end."""
        for mark in range(self._region or 0, len(self._marks) - 1):
            self._marks[mark] = self._marks[mark]._replace(step=maker.step, phase=maker.phase)
        self._region = None

    def before(self, func: Any, args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
        """Mark a call of a torch function."""
        self.moved_on()
        return self._pinned.candidate(func, args) or True

    def after(  # the arguments are those of a `CallListener`
        self, begun: Any, result: Any, _start: int, _end: int, _number: int | None, _frame: FrameType | None
    ) -> None:
        """Mark that it has ended; a step begins with the call that is seen to have made its first node."""
        self.moved_on()
        if begun is not True:
            self._made.setdefault(len(self._marks) - 1, []).extend(self._pinned.found(begun, result))
        first, now = self._marks[-2:]
        if first.phase != now.phase:
            self._marks[-2] = first._replace(step=now.step, phase=now.phase)

    def settle(self) -> None:
        """Stop the profiler, and write the ledger, once."""
        self._patches.close()
        self._stop()
        profiler, self._stopped = self._stopped, None
        if profiler is None:
            return
        events = sorted(profiled_events(profiler, _MARK), key=lambda event: event.time_ns)
        self._replay(events)

    def _make_way(self) -> None:
        """End before the program's own profiler begins: there would be marks of ours in it, and none in ours.

        Only the thread that has started ours can stop it. One that waits for the caller never does, and then ours is
        left as it is: stopped after the other one it would end the process. NOTE [One profiler] in `profiler_turn`
        """
        if self._profiler is None:
            return
        if get_ident() == self._thread:
            self._stop_early()
            return
        self._is_asked_to_stop = True
        if not self._has_stopped.wait(_PATIENCE_S):
            self.is_lost = self._leave() is not None

    def _stop_early(self) -> None:
        """Stop the profiler, and note how far the steps have come."""
        self._ended_in = self._maker()
        self._stop()

    def _stop(self) -> None:
        """Stop the profiler, if it runs."""
        profiler = self._leave()
        if profiler is None:
            return
        if get_ident() == self._thread:
            self._whole.__exit__(None, None, None)
        stop_profiler(profiler)
        self._stopped = profiler
        self._has_stopped.set()

    def _leave(self) -> Any:
        """Mark nothing more; return the profiler, None if that was so already."""
        with self._marking:
            profiler, self._profiler = self._profiler, None
        if profiler is not None:
            own_work.end()
            self._recorder.dismiss(self)
            self._recorder.on_module.remove(self.moved_on)
            self._recorder.on_compiled.remove(self._on_compiled)
        return profiler

    def _replay(self, events: list[ProfiledEvent]) -> None:
        replay = AllocatorReplay(self._ledgers, self._before)
        mark, marks = 0, dict[int, int]()  # of all threads, and of each
        threads = dict[int, int]()  # our numbers of threads, by the profiler's
        is_after = False  # a step
        for event in with_addresses(events):
            if event.name:
                if event.name == _WHOLE:
                    continue
                mark = marks[event.thread] = int(event.name.removeprefix(_MARK))
                threads[event.thread] = self._threads[mark]
                ends = self._marks[mark].phase == "after step" and not is_after
                is_after = self._marks[mark].phase == "after step"
                if ends:
                    self._ledgers.may_end(self._marks[mark].step)
                replay.pinned(self._made.get(mark, ()), self._marks[mark])
                replay.mark(self._freed.get(mark, ()), self._labels[mark])
            else:
                running = self._running(marks.get(event.thread, mark), mark)
                replay.memory(event, maker_of(event, running, self._identity(event, threads)))

    def _identity(self, event: ProfiledEvent, threads: Mapping[int, int]) -> int | None:
        """Identify the node that ran; None if the thread that made it was not followed."""
        if event.made_on is None or event.sequence_nr is None:
            return event.sequence_nr
        index = threads.get(event.made_on)
        return None if index is None else self._recorder.others.identity_on(index, event.sequence_nr)

    def _running(self, own: int, latest: int) -> StorageMaker:
        """Say what ran on a thread: what it has marked itself, if that was in the same part of the same step.

        A line is that of the thread that called backward, where the thread of a device runs none of the program.
        """
        mine, others = self._marks[own], self._marks[latest]
        if own == latest or (mine.step, mine.phase) != (others.step, others.phase):
            return others
        return mine

    def _watch(self, label: Label) -> None:
        """Note memory that was there before; the CPU's allocator does not say when it is freed."""
        for storage in map(storage_of, plain_tensors(label.tensor)):
            place = _place(storage)
            if place is not None:
                self._before.append((place, storage.nbytes(), label.purpose))
                self._watched.append(ref(storage, partial(self._ended, place)))

    def _ended(self, place: Place, _reference: object) -> None:
        self._ended_at(place)

    def _ended_at(self, place: Place) -> None:
        if self._profiler is not None:
            self.moved_on()
            self._freed.setdefault(len(self._marks) - 1, []).append(place)


def _take_first_warning() -> None:
    """Free memory from before a profiler: torch warns on stderr of the first time in a process.

    Source: c10/core/CPUAllocator.cpp, torch 2.13.
    """
    held = [ops.empty(_MIN_BYTES, dtype=torch.uint8, device="cpu")]  # whatever the default device is
    profiler = profile(use_kineto=True, profile_memory=True)
    start_profiler(profiler)
    try:
        stderr = os.dup(_STDERR)
    except OSError:  # it is closed
        stderr = None
    try:
        if stderr is not None:
            with Path(os.devnull).open("w") as null:
                os.dup2(null.fileno(), _STDERR)
        held.clear()
    finally:
        if stderr is not None:
            os.dup2(stderr, _STDERR)
            os.close(stderr)
        stop_profiler(profiler)
