"""Measure a program on real tensors: what torch's CPU allocator gives out and takes back, by torch's own profiler.

The program runs as it is. Empty ranges among the profiler's events mark what ran when: lines, modules, parts of the
step. The ledger is written when the program has ended.
"""

import os
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self
from weakref import ref

import torch
from torch.autograd.profiler import profile

from gradinspect.observers.gradients.timing import start_quietly
from gradinspect.observers.memory.storage_ledger import Ledger, Life, Purpose, StorageMaker
from gradinspect.observers.memory.storage_purposes import Claim
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.storages import plain_tensors, storage_of
from gradinspect.torch_api.distributed import communicates_by
from gradinspect.torch_api.profiling import (
    ProfiledEvent,
    profiled_events,
    profiler_range,
    require_memory_events,
    require_profiler_ranges,
)

_MARK = "gradinspect::memory#"
_MIN_BYTES = 4096
_STDERR = 2
_GLOO = (
    "This is more than the rank needs: gloo copies what it sends, and its threads free the copies, of which torch's "
    "profiler does not hear. Without the other ranks it can be counted exactly: --world-size."
)


def _address(storage: Any) -> int | None:
    """Return where a storage is; None for that of a wrapper subclass, which has no memory of its own."""
    try:
        return None if storage is None else int(storage.data_ptr())
    except RuntimeError:
        return None


class AllocatorTracker:
    """Measures while it is active. Use it as a context manager, around the program."""

    def __init__(
        self, ledger: Ledger, maker: Callable[[], StorageMaker], recorder: Recorder, before: Iterable[Claim] = ()
    ) -> None:
        """Set up.

        Args:
            ledger: What is written in the end.
            maker: Says what runs now.
            recorder: Tells of each call of a torch function.
            before: What is alive already, and what its memory is for.
        """
        require_profiler_ranges()
        require_memory_events()
        self._ledger = ledger
        self._maker = maker
        self._recorder = recorder
        self._marks: list[StorageMaker] = []
        self._claims: list[list[tuple[int, Purpose]]] = []  # of each mark: address, and what its memory is for
        self._profiler: Any = None
        self._has_gloo = False
        self._freed: dict[int, list[int]] = {}  # mark -> addresses of what was there before, and is no longer
        self._watched: list[Any] = []
        self._before: list[tuple[int, int, Purpose]] = []  # address, bytes
        for claim in before:
            self._watch(claim)

    def __enter__(self) -> Self:
        """Start the profiler."""
        if self._before:
            _take_first_warning()
        self._profiler = profile(use_kineto=True, profile_memory=True)
        start_quietly(self._profiler)
        self._recorder.listeners.append(self)
        self._recorder.on_module.append(self.moved_on)
        self.moved_on()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it, and write the ledger."""
        self.settle()

    @property
    def notes(self) -> tuple[str, ...]:
        """What makes the measurement too high."""
        return (_GLOO,) if self._has_gloo else ()

    def claim(self, claims: Iterable[Claim]) -> None:
        """Note what the memory of some tensors is for, from now on."""
        if self._profiler is None:
            return
        self._has_gloo = self._has_gloo or communicates_by("gloo")
        self.moved_on()
        for claim in claims:
            storages = map(storage_of, plain_tensors(claim.tensor))
            purpose = claim.purpose
            self._claims[-1] += [(address, purpose) for address in map(_address, storages) if address is not None]

    def moved_on(self) -> None:
        """Mark what runs now."""
        if self._profiler is not None:
            self._marks.append(self._maker())
            self._claims.append([])
            with profiler_range(f"{_MARK}{len(self._marks) - 1}"):
                pass

    def before(self, _func: Any, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
        """Mark a call of a torch function."""
        self.moved_on()
        return True

    def after(  # as the recorder tells it
        self, _begun: Any, _result: Any, _start: int, _end: int, _number: int | None, _frame: FrameType | None
    ) -> None:
        """Mark that it has ended; a step begins with the call that is seen to have made its first node."""
        self.moved_on()
        begun, now = self._marks[-2:]
        if begun.phase != now.phase:
            self._marks[-2] = begun._replace(step=now.step, phase=now.phase)

    def settle(self) -> None:
        """Stop the profiler, and write the ledger, once."""
        if self._profiler is None:
            return
        profiler, self._profiler = self._profiler, None
        self._recorder.dismiss(self)
        self._recorder.on_module.remove(self.moved_on)
        profiler.__exit__(None, None, None)
        events = sorted(profiled_events(profiler, _MARK), key=lambda event: event.time_ns)
        self._replay(events)

    def _replay(self, events: list[ProfiledEvent]) -> None:
        lives = self._lives_before()
        mark = 0
        for event in events:
            if event.name:
                mark = int(event.name.removeprefix(_MARK))
                self._at_mark(mark, lives)
            elif event.num_bytes >= 0:
                if event.address in lives:  # another thread took it back, of which the profiler does not hear
                    self._ledger.end(lives.pop(event.address))
                lives[event.address] = self._ledger.begin(event.num_bytes, self._maker_of(event, self._marks[mark]))
            elif event.address in lives:
                self._ledger.end(lives.pop(event.address))

    def _at_mark(self, mark: int, lives: dict[int, Life]) -> None:
        for address in self._freed.get(mark, ()):
            if address in lives:
                self._ledger.end(lives.pop(address))
        for address, purpose in self._claims[mark]:
            if address in lives:
                lives[address].claim(purpose)

    def _lives_before(self) -> dict[int, Life]:
        """Begin with what was alive already, by address."""
        lives: dict[int, Life] = {}
        for address, num_bytes, purpose in self._before:
            if address not in lives:
                lives[address] = self._ledger.begin(num_bytes, StorageMaker(0, "setup", ""))
            lives[address].claim(purpose)
        return lives

    def _watch(self, claim: Claim) -> None:
        """Note memory that was there before; the allocator does not say when it takes such memory back."""
        for storage in map(storage_of, plain_tensors(claim.tensor)):
            if storage is not None:
                address = storage.data_ptr()
                self._before.append((address, storage.nbytes(), claim.purpose))
                self._watched.append(ref(storage, partial(self._ended, address)))

    def _ended(self, address: int, _reference: object) -> None:
        if self._profiler is not None:
            self.moved_on()
            self._freed.setdefault(len(self._marks) - 1, []).append(address)

    def _maker_of(self, event: ProfiledEvent, running: StorageMaker) -> StorageMaker:
        op = event.op.replace("aten::", "aten.")
        if event.node and running.module is None:
            return running._replace(op=op, node=event.node, sequence_nr=event.sequence_nr, frame=None)
        return running._replace(op=op)


def _take_first_warning() -> None:
    """Free memory from before a profiler: torch warns on stderr of the first time in a process.

    Source: c10/core/CPUAllocator.cpp, torch 2.13.
    """
    held = [torch.empty(_MIN_BYTES, dtype=torch.uint8)]
    profiler = profile(use_kineto=True, profile_memory=True)
    start_quietly(profiler)
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
        profiler.__exit__(None, None, None)
