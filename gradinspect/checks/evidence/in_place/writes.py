"""Every write into memory while the program runs: which memory, at which version, on which line.

NOTE [When a write happened]
torch numbers the nodes of a thread, so the number that the next node would get is a clock. A call that writes begins at
one number and ends at another. A node that was made before the call began, and saved the memory that it wrote, holds
something else now; one that was made inside the call, as an operator makes its own, may have saved before or after the
write, and its version tells. What was written before the memory was given to somebody else needs no care: a saved
tensor keeps its memory from before it was saved. A custom Function is numbered before its forward runs, and saves after
it: what was written below the line that applied it came before.

NOTE [Put back]
Whoever measures a derivative moves one value through `.data`, computes, and puts it back: what was saved is what it was
again. So a write into memory that `.data` was asked for is noted with a checksum of what the whole storage held before.
"""

import sys
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from gradinspect.checks.evidence.in_place.contents import checksum
from gradinspect.checks.evidence.in_place.regions import Region, region_of
from gradinspect.record.frames import user_frames
from gradinspect.record.recorder import Recorder
from gradinspect.record.variables import local_variables
from gradinspect.torch_api.hooks import note_ours
from gradinspect.torch_api.tensors import key_of_storage, version_of

MAX_WRITES = 500_000  # remembered; then the older ones are forgotten


class SeenWrite(NamedTuple):
    """One write into one storage."""

    start: int  # the number that the next node would get, before the call
    end: int  # and after it
    versions: tuple[int, int]  # before it and after it
    op: str
    frame: int | None  # number in the recorder's table
    optimizer: str | None
    region: Region
    content: int | None  # checksum of what the storage held before. NOTE [Put back]

    @property
    def makes_node(self) -> bool:
        """Whether autograd knows of the write."""
        return self.end != self.start


class WriteLog:
    """Remembers writes. Use it as a context manager, around the program."""

    def __init__(self, recorder: Recorder) -> None:
        """Share the recorder's frames."""
        self._recorder = recorder
        self._by_storage: dict[int, list[SeenWrite]] = {}
        self._num_writes = 0
        self._detached: set[int] = set()  # storages that `.data` was asked for
        self._stepping: list[str] = []
        self._handles: list[Any] = []

    def __enter__(self) -> "WriteLog":
        """Begin to listen to every optimizer."""
        self._handles = [
            register_optimizer_step_pre_hook(self._before_step),
            register_optimizer_step_post_hook(self._after_step),
        ]
        note_ours(self._handles)
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop listening."""
        for handle in self._handles:
            handle.remove()

    def detached(self, tensor: torch.Tensor) -> None:
        """Remember that the memory of a tensor can now be written without raising its version."""
        self._detached.add(key_of_storage(tensor.untyped_storage()))

    def contents(self, tensors: Sequence[torch.Tensor]) -> tuple[int | None, ...]:
        """Take checksums of tensors that are about to be written. NOTE [Put back]."""
        if not self._detached:
            return ()
        return tuple(
            checksum(tensor)
            if _is_plain(tensor) and key_of_storage(tensor.untyped_storage()) in self._detached
            else None
            for tensor in tensors
        )

    def note(  # all that there is to one call
        self, op: str, start: int, end: int, frame: FrameType | None,
        written: Sequence[tuple[torch.Tensor, int, int | None]],
    ) -> None:  # fmt: skip
        """Remember one call that has written.

        Args:
            op: What it did.
            start: The number that the next node would get, before it.
            end: The same, after it.
            frame: Who called.
            written: Tensors, with the version and the checksum of before.
        """
        number = self._recorder.frames.number_of(frame)
        optimizer = self._stepping[-1] if self._stepping else None
        for tensor, before, content in written:
            if not _is_plain(tensor):
                continue
            versions = (before, version_of(tensor))
            write = SeenWrite(start, end, versions, op, number, optimizer, region_of(tensor), content)
            self._by_storage.setdefault(key_of_storage(tensor.untyped_storage()), []).append(write)
            self._num_writes += 1
        if self._num_writes > MAX_WRITES:
            self._forget()

    def last_end(self, key: int) -> int:
        """Return the number at which the last write into a storage ended; -1 if none is remembered."""
        return max((write.end for write in self._by_storage.get(key, ())), default=-1)

    def since(self, key: int, sequence_nr: int, forward: CodeType | None = None) -> list[SeenWrite]:
        """List the writes into a storage that ended after a node was made. NOTE [When a write happened].

        Args:
            key: The storage.
            sequence_nr: The node's.
            forward: Code of a custom Function's `forward`, whose node it is.
        """
        frames = self._recorder.frames
        applied = None if forward is None else self._recorder.frame_of(sequence_nr, forward)
        return [
            write
            for write in self._by_storage.get(key, ())
            if write.end > sequence_nr and (applied is None or not frames.is_within(write.frame, applied))
        ]

    def between(self, sequence_nr: int, versions: tuple[int, int]) -> list[SeenWrite]:
        """List the writes that took memory from one version to another since a node saved.

        For a torch that does not show the memory. Where the writes into two storages fit, nobody knows which it was.
        """
        fitting = []
        for key in self._by_storage:
            seen = [
                write
                for write in self.since(key, sequence_nr)
                if write.versions[0] < versions[1] and versions[0] < write.versions[1]
            ]
            reached = {version for write in seen for version in range(*write.versions)}
            if reached >= set(range(*versions)):
                fitting.append(seen)
        return fitting[0] if len(fitting) == 1 else []

    def _forget(self) -> None:
        """Keep the later half of the storages."""
        keys = list(self._by_storage)
        for key in keys[: len(keys) // 2 + 1]:
            del self._by_storage[key]
        self._num_writes = sum(map(len, self._by_storage.values()))

    def _before_step(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        if torch.compiler.is_compiling():
            return
        try:
            name = name_of_optimizer(optimizer)
        except Exception:  # whatever the program keeps there
            name = type(optimizer).__name__
        self._stepping.append(name)

    def _after_step(self, _optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        if not torch.compiler.is_compiling() and self._stepping:
            self._stepping.pop()


def _is_plain(tensor: torch.Tensor) -> bool:
    """Tell whether a tensor has memory and a version of the usual kind."""
    return tensor.layout is torch.strided and not tensor.is_inference()


def name_of_optimizer(optimizer: Optimizer) -> str:
    """Find the variable that holds an optimizer, where its step is called."""
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
