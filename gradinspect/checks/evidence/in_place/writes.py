"""Every write to memory while the program runs: which memory, at which version, on which line.

NOTE [When a write happened]
torch numbers the nodes of a thread, so the next sequence number serves as a clock. A call that writes starts at one
number and ends at another. If a node made before the call saved the written memory, its saved tensor has changed. If
the node was made inside the call, it may have saved before or after the write, and the version decides. A saved
tensor keeps its memory alive; what was written to memory that is gone is forgotten when its key comes again. A custom
Function is numbered before its forward runs, and saves after it, so writes inside its forward came before saving.
Nodes of other threads have numbers of their own, so a write knows the next number of each thread; what ran at the
same time does not count as later.

A write that bypasses autograd is stored with what the memory held before: NOTE [Changed values] in `contents`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from types import FrameType, MappingProxyType
from typing import Any, NamedTuple

import torch
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from gradinspect.checks.evidence.in_place.contents import MAX_KEPT, Content, KeptContents, read_bytes
from gradinspect.checks.evidence.in_place.regions import Region, part_of, region_of
from gradinspect.checks.evidence.in_place.shared_memory import SharedMemory
from gradinspect.checks.evidence.in_place.step_writes import StepWrites, Target
from gradinspect.graph import THREAD_SPAN
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.storages import memory_of, storage_key
from gradinspect.torch_api.nodes import next_sequence_nr
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import key_of_storage, version_of
from gradinspect.torch_api.weak import HiddenRef

MAX_WRITES = 500_000  # stored; then the older ones are dropped
_WITHOUT_MEMORY = (UninitializedParameter, UninitializedBuffer)
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

    def repeats(self, other: "SeenWrite") -> bool:
        """Return whether two writes differ in nothing but their versions, and no node was made since the first."""
        return (
            self.end == other.start == other.end
            and (self.frame, self.op, self.optimizer) == (other.frame, other.op, other.optimizer)
            and self.region == other.region
            and self.clocks == other.clocks
        )

    def ended_after(self, identity: int) -> bool:
        """Return whether the write ended after a node was made; False if that is not known."""
        if identity < THREAD_SPAN:
            return self.end > identity
        thread, number = divmod(identity, THREAD_SPAN)
        return self.clocks.get(thread, 0) > number


class _Written(NamedTuple):
    """A storage, and what was written to it."""

    storage: HiddenRef  # its key is its own while it is there
    writes: list[SeenWrite]


class WriteLog:
    """Stores writes. Use it as a context manager, around the program."""

    def __init__(self, recorder: Recorder) -> None:
        """Share the recorder's frames."""
        self._recorder = recorder
        self.shared = SharedMemory(recorder.errors)
        self._by_storage: dict[int, _Written] = {}
        self._num_writes = 0
        self._kept = KeptContents()
        self.may_be_silent = False  # whether any memory was accessed that can be written without a new version
        self._detached: set[int | None] = set()  # storages accessed through `.data`
        self.steps = StepWrites(recorder, partial(self.contents, is_silent=True), self.note)

    def __enter__(self) -> "WriteLog":
        """Watch the steps of all optimizers."""
        self.steps.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop watching."""
        self.steps.__exit__(*error)

    def detached(self, tensor: torch.Tensor) -> None:
        """Mark the memory of a tensor as writable without incrementing its version."""
        self._detached.add(storage_key(tensor))
        self.may_be_silent = True

    def contents(
        self, targets: Sequence[torch.Tensor], index: Any = ..., *, is_silent: bool
    ) -> dict[int, torch.Tensor]:
        """Copy what a call may write without autograd seeing it. NOTE [Changed values] in `contents`.

        Args:
            targets: What it may write to.
            index: The part of it.
            is_silent: Whether it leaves the version as it is.

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
        written: Sequence[Target], *, index: Any = ...,
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
        optimizer = self.steps.optimizer
        clocks = self._recorder.others.clocks()
        for tensor, before, data in written:
            storage = memory_of(tensor) if _is_plain(tensor) else None
            if storage is None:
                continue
            region, is_whole = _written_region(tensor, index)
            is_whole = is_whole and not op.startswith(_SELECTIVE)
            versions = (before, version_of(tensor))
            write = SeenWrite(start, end, versions, op, number, optimizer, region, None, is_whole, clocks)
            self._store(storage, write, data)
        if self._num_writes > MAX_WRITES:
            self._drop_older()

    def _store(self, storage: Any, write: SeenWrite, data: torch.Tensor | None) -> None:
        """Store a write; one that repeats the last, with no node in between, becomes a part of it."""
        writes = self._seen(key_of_storage(storage), storage)
        if writes and write.repeats(writes[-1]):
            writes[-1] = writes[-1]._replace(versions=(writes[-1].versions[0], write.versions[1]))
            return
        writes.append(write if data is None else write._replace(content=self._kept.keep(data)))
        self._num_writes += 1

    def _seen(self, key: int, storage: Any) -> list[SeenWrite]:
        """Return the list of what was written to a storage, a new one if that of its key is gone."""
        known = self._by_storage.get(key)
        if known is None or known.storage() is not storage:
            self._num_writes -= 0 if known is None else len(known.writes)
            known = self._by_storage[key] = _Written(HiddenRef(storage), [])
        return known.writes

    def _of(self, key: int | None) -> Sequence[SeenWrite]:
        """Return what was written to the storage that has a key now."""
        known = None if key is None else self._by_storage.get(key)
        return () if known is None or known.storage() is None else known.writes

    def caller_of(self, frame: int) -> int | None:
        """Return the frame that called the function of a frame."""
        return self._recorder.frames.caller_of(frame)

    def last_end(self, key: int) -> int:
        """Return the sequence number at which the last write to a storage ended; -1 if there is none."""
        return max((write.end for write in self._of(key)), default=-1)

    def last_by_program(self, tensor: torch.Tensor) -> SeenWrite | None:
        """Return the last write to a tensor's memory that no optimizer made."""
        key = storage_key(tensor) if _is_plain(tensor) else None
        own = [write for write in self._of(key) if write.optimizer is None and write.versions[1] <= version_of(tensor)]
        return own[-1] if own else None

    def last_frame_by_program(self, tensor: torch.Tensor) -> int | None:
        """Return the frame of that write."""
        last = self.last_by_program(tensor)
        return None if last is None else last.frame

    def since(self, key: int, identity: int, *, is_custom: bool = False) -> list[SeenWrite]:
        """List the writes to a storage that ended after a node was made. NOTE [When a write happened].

        Args:
            key: The storage.
            identity: The node's.
            is_custom: Whether the node is a custom Function, whose `forward` runs after the node was made.
        """
        frames = self._recorder.frames
        applied = self._recorder.frame_of(identity) if is_custom else None
        return [
            write
            for write in self._of(key)
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
        return storage_key(tensor) in self._detached

    def _drop_older(self) -> None:
        """Drop the older half of the storages."""
        keys, num_writes = list(self._by_storage), self._num_writes
        for key in keys[: len(keys) // 2 + 1]:
            del self._by_storage[key]
        self._num_writes = sum(len(one.writes) for one in self._by_storage.values())
        dropped = num_writes - self._num_writes
        self._recorder.errors.pass_over("write to memory", f"before the last {MAX_WRITES:,}", dropped)


def _is_plain(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has ordinary memory and a version; a parameter of a lazy module has none at first."""
    has_memory = tensor.layout is torch.strided and not issubclass(type(tensor), _WITHOUT_MEMORY)
    return has_memory and not ops.is_inference(tensor)


def _written_region(tensor: torch.Tensor, index: Any) -> tuple[Region, bool]:
    """Return the region that an index selects, and whether the index selects all of it."""
    whole = region_of(tensor)
    part = whole if index is ... else part_of(whole, index)
    return (whole, False) if part is None else (part, True)
