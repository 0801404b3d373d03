"""The calls of torch functions that a program makes, and how tensors flow between them.

NOTE [Identifying tensors]
A tensor is identified by its Python object, verified by a weak reference because addresses are reused. If the object is
new but its memory is not, as with nn.Parameter(h), the memory identifies it: a storage's key is its own while the
storage is there. Nothing here keeps memory of the program alive, nor a small block of torch's own beside each storage
that is gone: the allocator could not join what was freed around it, and an evaluation of 300 batches would take as much
memory as all of them.

NOTE [Before the first leaf]
A program may prepare its data by hundreds of thousands of calls before it trains. No gradient goes through them: as
long as nothing that requires grad was read, the older ones are forgotten where the limit would be reached. Their
numbers stay, and a value that one of them made comes from a call that nothing is known of.
"""

from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import Any
from weakref import ReferenceType

import torch
from msgspec import Struct
from torch import nn

from gradinspect.checks.evidence.in_place.shared_memory import is_from_numpy
from gradinspect.checks.evidence.lines.made_objects import Origins
from gradinspect.checks.evidence.lines.replaced import ReplacedVariable, replaced_unread
from gradinspect.checks.evidence.values.grad_scopes import scope_of
from gradinspect.checks.evidence.values.numbers import numeric_names
from gradinspect.checks.evidence.values.torch_calls import (
    FILLS,
    TAKES_ONLY_TYPE,
    CallKind,
    copied_by,
    detach_cause_of,
    tensors_in,
)
from gradinspect.checks.facts.value_flow import NO_LEAF, NORMAL, OUTSIDE, Call, DetachCause, Read, short_name
from gradinspect.recording.recorder import Recorder
from gradinspect.recording.values.storages import storage_key, storage_of
from gradinspect.torch_api.nodes import ForwardFrames
from gradinspect.torch_api.patching.originals import is_grad_enabled, ops
from gradinspect.torch_api.tensors import (
    is_leaf_here,
    key_of_storage,
    shows_known_memory,
)
from gradinspect.torch_api.weak import HiddenRef

MAX_CALLS = 100_000  # then recording stops, and missing gradients are not reported
MOST_PREPARING = 40_000  # calls before a leaf is read; then half of them are forgotten
_FORGOTTEN = Call("")  # NOTE [Before the first leaf]
_EACH_OF_ITS_OWN = frozenset(("broadcast_tensors", "meshgrid"))  # each result comes from one argument
_MAKES, _SKIPPED = CallKind.MAKES, CallKind.SKIPPED  # Python looks up a member of an Enum slowly


class _Made(Struct, frozen=True, gc=False):
    """The call that made a tensor."""

    tensor: ReferenceType[torch.Tensor]
    call: int
    was_live: bool  # it required grad then


class _Memory(Struct, frozen=True, gc=False):
    """A storage, the call that made it, and the last one that wrote to it."""

    storage: HiddenRef
    made: int
    written: int


class _Older(Struct, frozen=True, gc=False):
    """The reads of a tensor that was there before the last write."""

    tensor: ReferenceType[torch.Tensor]
    last_write: int  # the last call that wrote to any memory
    reads: tuple[Read, ...]

    def is_valid(self, tensor: torch.Tensor, last_write: int, *, is_live: bool) -> bool:
        """Return whether this is about the tensor as it is now."""
        return self.last_write == last_write and self.tensor() is tensor and self.reads[-1].is_live == is_live


class Dataflow:
    """Records calls while the recorder is active."""

    def __init__(self, recorder: Recorder) -> None:
        """Start empty."""
        self.calls: list[Call] = []
        self.leaves: list[ReferenceType[torch.Tensor]] = []
        self.frozen: dict[int, int | None] = {}  # id of a leaf -> the frame that froze it
        self.forced: dict[
            int, int | None
        ] = {}  # number of a leaf that a call made -> the frame that let it require grad
        self.on_missing_grad: Callable[[torch.Tensor, Read, FrameType | None], None] | None = None
        self.origins = Origins(recorder.frames)
        self.num_pauses = 0
        self.numbers: dict[int, frozenset[str]] = {}  # the variables that were numbers where one may have been read
        self.has_samples = False  # a distribution has sampled what could have a gradient
        self.has_integers = False  # a call made integers of what could have one, as argmin does
        self.has_grad_with_graph = False  # the last backward was called with create_graph=True
        self._grad_off: dict[int, int | None] = {}  # call with grad mode off -> the frame that switched it off
        self._num_forgotten = 0  # calls. NOTE [Before the first leaf]
        self._num_prepared: int | None = None  # calls that were known as the first leaf was read
        self._limit = MOST_PREPARING  # calls by which there is something to do
        self._recorder = recorder
        self.made: dict[int, _Made] = {}
        self._older: dict[int, _Older] = {}
        self._from_torch: dict[int, HiddenRef] = {}  # id -> data that is not from NumPy, as was found once
        self._memory: dict[int, _Memory] = {}  # by the keys of storages, which may be gone
        self._last_write = OUTSIDE  # the last call that wrote to any memory
        self._leaf_numbers: dict[int, int] = {}
        self._switched_off: int | None = None
        self._was_on = True
        self._forwards = ForwardFrames()  # shared, because it inspects each Function class once

    @property
    def is_full(self) -> bool:
        """Whether the limit of calls is reached."""
        return self._num_known >= MAX_CALLS

    @property
    def is_half_full(self) -> bool:
        """Whether as many calls again as there were since the first leaf was read may reach the limit."""
        prepared = self._num_known if self._num_prepared is None else self._num_prepared
        return self._num_known - prepared >= (MAX_CALLS - prepared) // 2

    @property
    def _num_known(self) -> int:
        return len(self.calls) - self._num_forgotten

    def note(  # noqa: PLR0913, PLR0917  # everything about one call
        self, name: str, kind: CallKind, args: tuple[Any, ...], kwargs: dict[str, Any], inputs: list[torch.Tensor],
        result: Any, number: int | None, frame: FrameType | None,
    ) -> None:  # fmt: skip
        """Record a call that has returned. The caller has disabled torch functions.

        Args:
            name: The function's name in the documentation of torch.
            kind: How to interpret the call.
            args: Its positional arguments.
            kwargs: Its keyword arguments.
            inputs: The tensors among both.
            result: What it returned.
            number: The user's frame in the recorder's table, if already known.
            frame: The calling frame.
        """
        if self.num_pauses or kind is _SKIPPED or (len(self.calls) >= self._limit and not self._makes_room()):
            return
        if number is None:
            number = self._recorder.frames.number_of(frame)
        if kind is _MAKES and type(result) is torch.Tensor:  # nearly all calls
            if _is_among(result, inputs) and result is not kwargs.get("out"):
                return
            given = tensors_in(*args[1:], kwargs) if name in TAKES_ONLY_TYPE else inputs
            self._note_new(name, given, result, number, frame)
        elif kind is CallKind.SWITCHES:
            self._switch(number)
        elif kind is CallKind.FREEZES:
            self._freeze(args, number)
        elif kind is CallKind.READS_GRAD:
            self._read_grad(name, args[0], result, number, frame)
        else:
            self._note(name, kind, args, kwargs, inputs, result, number, frame)

    def _note_new(  # noqa: C901, PLR0912  # what is done for most calls, inlined
        self, name: str, inputs: list[Any], result: torch.Tensor, number: int | None, frame: FrameType | None
    ) -> None:
        """Record a call that has made one tensor: what `_all_reads` and `_add` do, in one go, for nearly all calls."""
        made, last_write = self.made, self._last_write
        reads: list[Read] = []
        is_live = False
        for tensor in inputs:
            kept = made.get(id(tensor))
            if (
                kept is None
                or kept.call < last_write
                or kept.tensor() is not tensor
                or type(tensor) is not torch.Tensor
            ):
                reads.extend(self._older_reads(tensor, number))
                is_live = is_live or reads[-1].is_live
            elif tensor.requires_grad:  # type: ignore[union-attr]  # it is what was kept, which is not None
                reads.append(Read(kept.call, self._leaf_number(tensor) if is_leaf_here(tensor) else NO_LEAF, True))
                is_live = True
            else:
                reads.append(Read(kept.call))
        if len(reads) > 1:
            reads = _distinct(reads)
        is_off = not is_grad_enabled()
        is_new_live = result.requires_grad
        cause = None
        if is_live and not is_new_live:
            cause = detach_cause_of(name, _MAKES, [result], frame, self._forwards)
            self.has_samples |= cause == "sample"
            self.has_integers |= cause == "integer"
        elif is_live and name == NORMAL:
            self.has_samples = True
        call = len(self.calls)
        self.calls.append(Call(name, tuple(reads), number, cause, (), is_off))
        if is_off:
            self._grad_off[call] = self._switched_off
        made[id(result)] = _Made(HiddenRef(result), call, is_new_live)
        self._older.pop(id(result), None)
        storage = None if shows_known_memory(result) else storage_of(result)  # a storage takes long to reach
        if storage is not None:
            key = key_of_storage(storage)
            memory = self._memory.get(key)
            if memory is None or memory.storage() is None:
                self._memory[key] = _Memory(HiddenRef(storage), call, OUTSIDE)

    def _makes_room(self) -> bool:
        """Forget calls that prepare, if no leaf was read yet; False if no more can be recorded."""
        if self._num_prepared is not None:
            return False
        first, last = self._num_forgotten, len(self.calls) - MOST_PREPARING // 2
        self.calls[first:last] = [_FORGOTTEN] * (last - first)
        self._grad_off = {call: frame for call, frame in self._grad_off.items() if call >= last}
        self.made = {tensor: made for tensor, made in self.made.items() if made.call >= last}
        self._memory = {key: one for key, one in self._memory.items() if max(one.made, one.written) >= last}
        self._older.clear()
        self._from_torch.clear()
        self._num_forgotten, self._limit = last, last + MOST_PREPARING
        return True

    def note_numbers(self, frame: FrameType | None) -> None:
        """Note the variables that are numbers where a call may have been given one, once for each line."""
        number = None if self.num_pauses else self._recorder.frames.number_of(frame)
        if number is not None and number not in self.numbers:
            self.numbers[number] = numeric_names(frame)

    def caller_of(self, call: int) -> int | None:
        """Return the frame that called the function in which a call was made."""
        number = self.calls[call].frame
        return None if number is None else self._recorder.frames.caller_of(number)

    def parted(self, first: int, second: int) -> tuple[int | None, int | None]:
        """Return the innermost frames on different lines from which two calls were made; without any, their own."""
        one, other = self.calls[first].frame, self.calls[second].frame
        return (one, other) if one is None or other is None else self._recorder.frames.parted(one, other)

    def checkpointed_at(self, call: int) -> int | None:
        """Return the frame that called the reentrant checkpoint in which a call ran without gradients."""
        return self._grad_off.get(call)

    def switched_off_at(self, call: int) -> int | None:
        """Return the frame of the scope, or else of the call, that disabled gradients for a call."""
        frames = self._recorder.frames
        scope = scope_of(frames, self.calls[call].frame)
        return self._grad_off.get(call) if scope is None else frames.number_at(*scope)

    def replaced_at(self, call: int) -> ReplacedVariable | None:
        """Return the variable that had what a call returned, if it was assigned anew before anything read it."""
        return replaced_unread(self._recorder.frames, self.calls[call].frame)

    def close(self) -> None:
        """Forget all storages, but keep the record."""
        self._memory.clear()

    def enter(self, tensors: Iterable[torch.Tensor], number: int | None) -> None:
        """Record which of the tensors come from NumPy, so that the next call has the number `len(calls)`.

        Args:
            tensors: What the next call has been given.
            number: Its frame.
        """
        if self.num_pauses or len(self.calls) >= self._limit:
            return
        for tensor in tensors:
            if not tensor.requires_grad and self._maker(tensor) is None:
                self._enter_from_numpy(tensor, number)

    def read(self, tensor: torch.Tensor) -> Read:
        """Return the read of a tensor."""
        return self._reads(tensor)[-1]

    def is_known(self, tensor: torch.Tensor) -> bool:
        """Return whether a call has made a tensor, or has read data that none made."""
        return self._maker(tensor) is not None or self._is_from_torch(tensor)

    def made_at(self, tensor: torch.Tensor) -> int | None:
        """Return the frame of the call that made a tensor; None if that is not known."""
        call = self.read(tensor).call
        return None if call == OUTSIDE else self.calls[call].frame

    def last_write(self, tensor: torch.Tensor) -> int:
        """Return the last call that wrote to the memory of a tensor, or else that made it."""
        return self._reads(tensor)[0].call

    def leaf(self, number: int) -> torch.Tensor | None:
        """Return a leaf that was read, if it is still alive."""
        return self.leaves[number]()

    def _note(  # noqa: PLR0913, PLR0917  # as above
        self, name: str, kind: CallKind, args: tuple[Any, ...], kwargs: dict[str, Any], given: list[torch.Tensor],
        result: Any, number: int | None, frame: FrameType | None,
    ) -> None:  # fmt: skip
        if len(given) > 1 and short_name(name) in _EACH_OF_ITS_OWN:
            for taken, made in zip(given, tensors_in(result), strict=False):
                self._note(name, kind, (taken,), {}, [taken], made, number, frame)
            return
        inputs, outputs = _taken_and_made(kind, args, kwargs, given, result)
        is_write = kind is CallKind.WRITES
        if not (inputs if kind is CallKind.TO_PYTHON else outputs):
            return
        self.enter(inputs, number)
        reads = self._all_reads(inputs)
        if is_write:
            reads = (*self._overwritten(outputs[0]), *reads)
            if not inputs and (outputs[0].requires_grad or not (reads or short_name(name) in FILLS)):
                return
        cause: DetachCause | None = "python" if kind is CallKind.TO_PYTHON else None
        if outputs and _any_live(reads):
            cause = self._detach_cause(name, kind, outputs, frame)
            if cause == "gradient" and _creates_graph(args, kwargs):
                cause = "unknown"  # for example a linear function, whose derivative is constant
            self.has_integers |= cause == "integer"
        wrt = self._all_reads(_with_respect_to(args, kwargs)) if kind is CallKind.GRADIENT else ()
        self._add(Call(name, reads, number, cause, wrt, not is_grad_enabled(), is_write), outputs)

    def _add(self, call: Call, outputs: Sequence[torch.Tensor]) -> None:
        """Store a call, and what it has made. NOTE [Identifying tensors]."""
        number = len(self.calls)
        self.calls.append(call)
        if call.is_off:
            self._grad_off[number] = self._switched_off
        if call.is_write:
            self._last_write = number
        for output in outputs:
            self.made[id(output)] = _Made(HiddenRef(output), number, output.requires_grad)
            storage = storage_of(output)
            if storage is None:
                continue
            key = key_of_storage(storage)
            known = self._memory.get(key)
            if known is None or known.storage() is None:
                self._memory[key] = _Memory(HiddenRef(storage), number, OUTSIDE)
            elif call.is_write:
                self._memory[key] = _Memory(known.storage, known.made, number)

    def _detach_cause(
        self, name: str, kind: CallKind, outputs: list[torch.Tensor], frame: FrameType | None
    ) -> DetachCause | None:
        """Return how a call that read tensors with a graph has lost it, in all or some of its results."""
        detached = [output for output in outputs if not output.requires_grad]
        if len(detached) == len(outputs):
            return detach_cause_of(name, kind, outputs, frame, self._forwards)
        if kind is CallKind.WRITES:
            return copied_by(frame)
        are_indices = detached and not any(ops.is_floating_point(output) for output in detached)
        return "integer" if are_indices else None  # max() and topk() return them beside the values

    def _enter_from_numpy(self, tensor: torch.Tensor, number: int | None) -> None:
        """Record a call of torch.from_numpy where its result is first read: it is no torch function."""
        if self._is_from_torch(tensor):
            return
        if self._memory_of(tensor) is None and is_from_numpy(tensor):
            self._add(Call("torch.from_numpy", (), number), (tensor,))
        else:
            self._from_torch[id(tensor)] = HiddenRef(tensor)

    def _is_from_torch(self, tensor: torch.Tensor) -> bool:
        known = self._from_torch.get(id(tensor))
        return known is not None and known() is tensor

    def _all_reads(self, tensors: list[torch.Tensor]) -> tuple[Read, ...]:
        if len(tensors) == 1:
            return self._reads(tensors[0])  # which differ
        return tuple(_distinct([read for tensor in tensors for read in self._reads(tensor)]))

    def _reads(self, tensor: torch.Tensor) -> tuple[Read, ...]:
        """Return the read of the last write to the tensor's memory by another call, if any, and the tensor's own."""
        is_live = tensor.requires_grad
        if type(tensor) is torch.Tensor:  # what _is_leaf does, without one more call
            is_leaf = is_live and is_leaf_here(tensor)
        else:
            is_leaf = _is_leaf(tensor, is_live=is_live)
        leaf = self._leaf_number(tensor) if is_leaf else NO_LEAF
        kept = self.made.get(id(tensor))
        made = kept.call if kept is not None and kept.tensor() is tensor else OUTSIDE
        if made != OUTSIDE and made >= self._last_write:  # nearly all: nothing was written since
            return (Read(made, leaf, is_live),)
        memory = self._memory_of(tensor)
        if memory is None:
            return (Read(made, leaf, is_live),)
        first, written = memory.made, memory.written
        read = Read(made if made != OUTSIDE else first, leaf, is_live)
        return (Read(written, leaf, is_live), read) if written > made else (read,)

    def _older_reads(self, tensor: torch.Tensor, number: int | None) -> tuple[Read, ...]:
        """Return the reads of a tensor that may have been written since it was made, or that no call made.

        They are the same until something is written. Parameters are read so again and again.
        """
        is_live = tensor.requires_grad
        known = self._older.get(id(tensor))
        if known is not None and known.is_valid(tensor, self._last_write, is_live=is_live):
            return known.reads
        if not is_live and self._maker(tensor) is None:
            self._enter_from_numpy(tensor, number)
        reads = self._reads(tensor)
        self._older[id(tensor)] = _Older(HiddenRef(tensor), self._last_write, reads)
        return reads

    def _memory_of(self, tensor: torch.Tensor) -> "_Memory | None":
        """Return what is known of the memory of a tensor. NOTE [Identifying tensors]."""
        key = storage_key(tensor)
        memory = None if key is None else self._memory.get(key)
        return None if memory is None or memory.storage() is None else memory

    def _maker(self, tensor: torch.Tensor) -> _Made | None:
        kept = self.made.get(id(tensor))
        return kept if kept is not None and kept.tensor() is tensor else None

    def _overwritten(self, tensor: torch.Tensor) -> tuple[Read, ...]:
        """Return the read of a tensor before the call that has just written to it."""
        kept = self._maker(tensor)
        return (
            ()
            if kept is None or _is_leaf(tensor, is_live=tensor.requires_grad)
            else (Read(kept.call, is_live=kept.was_live),)
        )

    def _leaf_number(self, tensor: torch.Tensor) -> int:
        number = self._leaf_numbers.get(id(tensor))
        if number is None or self.leaves[number]() is not tensor:
            if self._num_prepared is None:  # NOTE [Before the first leaf]
                self._num_prepared, self._limit = self._num_known, self._num_forgotten + MAX_CALLS
            number = self._leaf_numbers[id(tensor)] = len(self.leaves)
            self.leaves.append(HiddenRef(tensor))
        return number

    def _read_grad(self, name: str, tensor: Any, result: Any, number: int | None, frame: FrameType | None) -> None:
        if isinstance(result, torch.Tensor):
            if not result.requires_grad:
                cause: DetachCause = "unknown" if self.has_grad_with_graph else "gradient"
                self._add(Call(name, (), number, cause), (result,))
        elif self.on_missing_grad is not None and tensor.requires_grad:
            self.on_missing_grad(tensor, self.read(tensor), frame)

    def _switch(self, number: int | None) -> None:
        is_on = is_grad_enabled()
        if self._was_on and not is_on:
            self._switched_off = number
        self._was_on = is_on

    def _freeze(self, args: tuple[Any, ...], number: int | None) -> None:
        for tensor in args[:1]:
            if tensor.requires_grad:
                self.frozen.pop(id(tensor), None)
                if self._maker(tensor) is not None and _is_leaf(tensor, is_live=True):
                    self.forced[self._leaf_number(tensor)] = number
            else:
                self.frozen[id(tensor)] = number


def _taken_and_made(
    kind: CallKind, args: tuple[Any, ...], kwargs: dict[str, Any], inputs: list[torch.Tensor], result: Any
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """List the tensors that a call read, and those that it made or wrote to."""
    if kind is CallKind.GRADIENT:
        of = kwargs.get("outputs", args[0] if args else ())
        return tensors_in(of), tensors_in(result)
    if kind is CallKind.TO_PYTHON:
        return inputs, []
    if kind is CallKind.WRITES:
        return inputs[1:], inputs[:1]
    given = {id(tensor) for tensor in inputs}
    into = kwargs.get("out")
    return inputs, [output for output in tensors_in(result) if output is into or id(output) not in given]


def _is_among(tensor: torch.Tensor, others: list[torch.Tensor]) -> bool:
    """Return whether a tensor is one of others. These loops run for each call: a generator would cost more."""
    for other in others:  # noqa: SIM110  # as above
        if other is tensor:
            return True
    return False


def _distinct(reads: list[Read]) -> list[Read]:
    """Return each read once. Comparing two is faster than hashing them."""
    if len(reads) == 2:
        return reads[:1] if reads[0] == reads[1] else reads
    return list(dict.fromkeys(reads))


def _any_live(reads: tuple[Read, ...]) -> bool:
    for read in reads:  # noqa: SIM110  # as above
        if read.is_live:
            return True
    return False


def _is_leaf(tensor: torch.Tensor, *, is_live: bool) -> bool:
    """Return whether a tensor is a trainable leaf, unlike constants, which torch also calls leaves."""
    if type(tensor) is torch.Tensor:
        return is_live and is_leaf_here(tensor)
    return (is_live or isinstance(tensor, nn.Parameter)) and is_leaf_here(tensor)


def _creates_graph(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Read an argument of autograd.grad. Source: torch/autograd/__init__.py, torch 2.13."""
    return bool(kwargs.get("create_graph", args[4] if len(args) > 4 else False))


def _with_respect_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    return tensors_in(kwargs.get("inputs", args[1] if len(args) > 1 else ()))
