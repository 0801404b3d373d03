"""Every write to memory while the program runs: which memory, at which version, on which line.

NOTE [When a write happened]
torch numbers the nodes of a thread, so the next sequence number serves as a clock. A call that writes starts at one
number and ends at another. If a node made before the call saved the written memory, its saved tensor has changed. If
the node was made inside the call, it may have saved before or after the write, and the version decides. Reused memory
needs no care: a saved tensor keeps its memory alive. A custom Function is numbered before its forward runs, and saves
after it, so writes inside its forward came before saving. Nodes of other threads have numbers of their own, so a write
knows the next number of each thread; what ran at the same time is not taken for later.

A write past autograd is stored with what the memory held before: NOTE [Changed values] in `contents`.
"""

import sys
from collections.abc import Mapping, Sequence
from types import CodeType, FrameType, MappingProxyType
from typing import Any, NamedTuple

import torch
from torch.optim.optimizer import Optimizer

from gradinspect.checks.evidence.in_place.contents import MAX_KEPT, Content, KeptContents, read_bytes
from gradinspect.checks.evidence.in_place.regions import Region, part_of, region_of
from gradinspect.checks.evidence.in_place.shared_memory import SharedMemory
from gradinspect.graph import THREAD_SPAN
from gradinspect.recording.frames import user_frames
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.variables import local_variables
from gradinspect.torch_api.hooks import hook_optimizer_steps
from gradinspect.torch_api.nodes import next_sequence_nr
from gradinspect.torch_api.originals import ops
from gradinspect.torch_api.tensors import key_of_storage, version_of

MAX_WRITES = 500_000  # stored; then the older ones are dropped
_SELECTIVE = ("index_", "scatter_", "masked_", "put_")  # operators that write what another argument selects


class SeenWrite(NamedTuple):
    """One write into one storage."""

    start: int  # the next sequence number before the call
    end: int  # and after it
    versions: tuple[int, int]  # before and after the call
    op: str
    frame: int | None  # number in the recorder's table
    optimizer: str | None
    region: Region
    content: Content | None  # what the region held before
    is_whole: bool = True  # whether it wrote the whole region, not elements that another argument selects
    clocks: Mapping[int, int] = MappingProxyType({})  # the next number of each other thread that had made nodes

    @property
    def makes_node(self) -> bool:
        """Whether autograd recorded the write."""
        return self.end != self.start

    def ended_after(self, identity: int) -> bool:
        """Return whether the write ended after a node was made; False if that is not known."""
        if identity < THREAD_SPAN:
            return self.end > identity
        thread, number = divmod(identity, THREAD_SPAN)
        return self.clocks.get(thread, 0) > number


class WriteLog:
    """Stores writes. Use it as a context manager, around the program."""

    def __init__(self, recorder: Recorder) -> None:
        """Share the recorder's frames."""
        self._recorder = recorder
        self.shared = SharedMemory()
        self._by_storage: dict[int, list[SeenWrite]] = {}
        self._num_writes = 0
        self._kept = KeptContents()
        self._detached: set[int] = set()  # storages accessed through `.data`
        self._stepping: list[str] = []
        self._handles: list[Any] = []

    def __enter__(self) -> "WriteLog":
        """Register hooks of all optimizers."""
        guard = self._recorder.errors.guard
        self._handles = hook_optimizer_steps(guard(self._before_step), guard(self._after_step), self._recorder.turn)
        return self

    def __exit__(self, *_error: object) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()

    @property
    def may_be_silent(self) -> bool:
        """Whether any memory was accessed that can be written without incrementing its version."""
        return bool(self._detached)

    def detached(self, tensor: torch.Tensor) -> None:
        """Mark the memory of a tensor as writable without incrementing its version."""
        self._detached.add(key_of_storage(ops.untyped_storage(tensor)))

    def contents(
        self, targets: Sequence[torch.Tensor], index: Any = ..., *, is_silent: bool
    ) -> dict[int, torch.Tensor]:
        """Copy what a call may write past autograd. NOTE [Changed values] in `contents`.

        Args:
            targets: What it may write to.
            index: The part of it.
            is_silent: Whether it raises no version.

        Returns:
            The bytes, by the id of the tensor; none while no node was made that could have saved anything.
        """
        found: dict[int, torch.Tensor] = {}
        if next_sequence_nr() == 0 and not self._recorder.others.clocks():
            return found
        num_bytes = 0
        for tensor in targets:
            if not _is_plain(tensor) or not (is_silent or self._is_detached(tensor)):
                continue
            region, _ = _written_region(tensor, index)
            data = read_bytes(tensor, region) if num_bytes + region.num_bytes <= MAX_KEPT else None
            if data is not None:
                found[id(tensor)] = data
                num_bytes += data.nbytes
        return found

    def note(  # everything about one call
        self, op: str, start: int, end: int, frame: FrameType | None,
        written: Sequence[tuple[torch.Tensor, int, torch.Tensor | None]], *, index: Any = ...,
    ) -> None:  # fmt: skip
        """Store a call that has written.

        Args:
            op: The operator.
            start: The next sequence number before the call.
            end: The same, after it.
            frame: The calling frame.
            written: Tensors, with their version and bytes before the call.
            index: The part of them.
        """
        number = self._recorder.frames.number_of(frame)
        optimizer = self._stepping[-1] if self._stepping else None
        clocks = self._recorder.others.clocks()
        for tensor, before, data in written:
            if not _is_plain(tensor):
                continue
            versions = (before, version_of(tensor))
            content = None if data is None else self._kept.keep(data)
            region, is_whole = _written_region(tensor, index)
            is_whole = is_whole and not op.startswith(_SELECTIVE)
            write = SeenWrite(start, end, versions, op, number, optimizer, region, content, is_whole, clocks)
            self._by_storage.setdefault(key_of_storage(ops.untyped_storage(tensor)), []).append(write)
            self._num_writes += 1
        if self._num_writes > MAX_WRITES:
            self._drop_older()

    def caller_of(self, frame: int) -> int | None:
        """Return the frame that called the function of a frame."""
        return self._recorder.frames.caller_of(frame)

    def last_end(self, key: int) -> int:
        """Return the sequence number at which the last write to a storage ended; -1 if there is none."""
        return max((write.end for write in self._by_storage.get(key, ())), default=-1)

    def last_by_program(self, tensor: torch.Tensor) -> SeenWrite | None:
        """Return the last write to a tensor's memory that no optimizer made."""
        seen = self._by_storage.get(key_of_storage(ops.untyped_storage(tensor)), ()) if _is_plain(tensor) else ()
        own = [write for write in seen if write.optimizer is None and write.versions[1] <= version_of(tensor)]
        return own[-1] if own else None

    def since(self, key: int, identity: int, forward: CodeType | None = None) -> list[SeenWrite]:
        """List the writes to a storage that ended after a node was made. NOTE [When a write happened].

        Args:
            key: The storage.
            identity: The node's.
            forward: The code of `forward`, if the node is a custom Function.
        """
        frames = self._recorder.frames
        applied = None if forward is None else self._recorder.frame_of(identity, forward)
        return [
            write
            for write in self._by_storage.get(key, ())
            if write.ended_after(identity) and (applied is None or not frames.is_within(write.frame, applied))
        ]

    def between(self, identity: int, versions: tuple[int, int]) -> list[SeenWrite]:
        """List the writes that took memory from one version to another since a node saved.

        For a torch that does not expose the memory. Ambiguous if the writes to two storages match, so then it is empty.
        """
        matching = []
        for key in self._by_storage:
            seen = [
                write
                for write in self.since(key, identity)
                if write.versions[0] < versions[1] and versions[0] < write.versions[1]
            ]
            reached = {version for write in seen for version in range(*write.versions)}
            if reached >= set(range(*versions)):
                matching.append(seen)
        return matching[0] if len(matching) == 1 else []

    def _is_detached(self, tensor: torch.Tensor) -> bool:
        return key_of_storage(ops.untyped_storage(tensor)) in self._detached

    def _drop_older(self) -> None:
        """Drop the older half of the storages."""
        keys = list(self._by_storage)
        for key in keys[: len(keys) // 2 + 1]:
            del self._by_storage[key]
        self._num_writes = sum(map(len, self._by_storage.values()))

    def _before_step(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        if torch.compiler.is_compiling() or not self._recorder.is_here:
            return
        try:
            name = name_of_optimizer(optimizer)
        except Exception:  # inspecting objects of the program may raise
            name = type(optimizer).__name__
        self._stepping.append(name)

    def _after_step(self, _optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        if not torch.compiler.is_compiling() and self._stepping and self._recorder.is_here:
            self._stepping.pop()


def _is_plain(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has ordinary memory and a version."""
    return tensor.layout is torch.strided and not ops.is_inference(tensor)


def _written_region(tensor: torch.Tensor, index: Any) -> tuple[Region, bool]:
    """Return the region that an index selects, and whether the index selects all of it."""
    whole = region_of(tensor)
    part = whole if index is ... else part_of(whole, index)
    return (whole, False) if part is None else (part, True)


def name_of_optimizer(optimizer: Optimizer) -> str:
    """Find the variable that holds an optimizer, in the frames that call its step."""
    for frame in user_frames(sys._getframe(2)):
        for space in (local_variables(frame), frame.f_globals):
            name = _name_in(space, optimizer)
            if name is not None:
                return name
    return type(optimizer).__name__


def _name_in(space: dict[str, object], optimizer: Optimizer) -> str | None:
    for name, value in list(space.items()):
        if value is optimizer:
            return name
    attributes = getattr(space.get("self"), "__dict__", {})
    return next((f"self.{name}" for name, value in list(attributes.items()) if value is optimizer), None)
