"""Values that a program has set, and that an initialization has overwritten before anything read them.

NOTE [Initialized again on purpose]
A new head of a model whose checkpoint was loaded is initialized again; so it counts only if nothing is left of the
matrices that one line has set. What is drawn at random on the line that sets it is no value to be kept. The padding row
of an embedding is zero when the layer is made, and gets no gradient: if it is not zero when it is looked up, and a
random initialization was the last to write the whole table, then that has filled it.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import torch
from msgspec import Struct
from torch.nn import init

from gradinspect.checks.evidence.arguments.given import argument
from gradinspect.checks.evidence.values.dataflow import Dataflow
from gradinspect.checks.evidence.values.result_states import SizeLimit, is_small_and_readable
from gradinspect.checks.facts.objectives import FilledPadding, OverwrittenValues
from gradinspect.checks.facts.value_flow import OUTSIDE
from gradinspect.graph import Frame
from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.recording.values.storages import storage_key, storage_of
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.weak import HiddenRef

MOST_STORAGES = 5_000
MOST_ELEMENTS = 65_536
_RANDOM = frozenset((
    "normal", "uniform", "trunc_normal", "exponential", "xavier_uniform", "xavier_normal", "kaiming_uniform",
    "kaiming_normal", "orthogonal", "sparse",
))  # fmt: skip
_FILLS = _RANDOM | frozenset(("zero", "fill", "constant", "ones", "zeros"))
_DRAWS = frozenset(("randn", "rand", "randn_like", "rand_like", "normal", "empty"))
_NO_USE = frozenset(("data", "detach"))  # reads that need no value
_LEAVES_OUT = frozenset((
    "masked_fill", "masked_select", "where", "scaled_dot_product_attention", "multi_head_attention_forward",
    "pack_padded_sequence", "ne", "eq", "count_nonzero",
))  # fmt: skip
_FEW_FRAMES = 8  # of torch, between a function and the program


class _Memory(Struct):
    """What was last written to all of a storage."""

    storage: HiddenRef
    is_matrix: bool
    set_by: int | None = None  # the frame that set it to values that were there
    set_call: int = OUTSIDE
    lost_by: int | None = None  # the frame that initialized it after that
    filled_by: int | None = None  # the frame that initialized it at random, if nothing was set later


class _Padding(Struct):
    """The lookups on a line."""

    num_calls: int = 0
    filled_by: int | None = None
    row: int = 0


class InitialValueLog:
    """Looks at what sets and initializes whole tensors. NOTE [Initialized again on purpose]."""

    functions = _FILLS | frozenset(("copy", "embedding"))

    def __init__(self, flow: Dataflow, errors: OwnErrors) -> None:
        """Share the calls that read the values; what is too large or too much is counted."""
        self._flow = flow
        self._errors = errors
        self._limit = SizeLimit(errors, "lookup with padding", MOST_ELEMENTS)
        self._memory: dict[int, _Memory] = {}
        self._lookups: dict[int | None, _Padding] = {}

    def note(self, function: str, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at a call that has returned, given the frame that it is on."""
        if function == "embedding":
            self._look_up(args, kwargs, number)
            return
        target = argument(args, kwargs, 0, "tensor")  # as torch.nn.init passes it on
        memory = self._memory_of(target) if isinstance(target, torch.Tensor) else None
        if memory is None or number is None:
            return
        if function == "copy":
            self._copied(memory, args, number)
        else:
            self._filled(memory, number, is_random=function in _RANDOM)

    def _memory_of(self, tensor: torch.Tensor) -> _Memory | None:
        """Return what is known of the memory that a tensor fills."""
        key = storage_key(tensor) if ops.is_floating_point(tensor) and not tensor.is_meta else None
        storage = None if key is None else storage_of(tensor)
        if key is None or storage is None or storage.nbytes() != ops.numel(tensor) * tensor.itemsize:
            return None
        known = self._memory.get(key)
        if known is not None and known.storage() is not None:
            return known
        if len(self._memory) >= MOST_STORAGES:
            self._errors.pass_over("tensor that is set or filled", f"after the first {MOST_STORAGES:,}")
            return None
        self._memory[key] = _Memory(HiddenRef(storage), len(tensor.shape) > 1)
        return self._memory[key]

    def _copied(self, memory: _Memory, args: Sequence[Any], number: int) -> None:
        source = args[1] if len(args) > 1 else None
        if not isinstance(source, torch.Tensor) or source.shape != args[0].shape:
            return
        made = self._flow.read(source).call
        calls = self._flow.calls
        is_drawn = made != OUTSIDE and calls[made].frame == number
        is_random = _is_initializing() or (is_drawn and self._is_random(made))
        memory.set_by, memory.set_call = (None, OUTSIDE) if is_random else (number, len(calls))
        memory.lost_by = None
        memory.filled_by = number if is_random else None

    def _is_random(self, made: int) -> bool:
        calls = self._flow.calls
        todo, seen = [made], {OUTSIDE}
        while todo:
            one = todo.pop()
            if one not in seen and calls[one].frame == calls[made].frame:
                seen.add(one)
                todo += [read.call for read in calls[one].reads]
                if calls[one].name in _DRAWS:
                    return True
        return False

    def _filled(self, memory: _Memory, number: int, *, is_random: bool) -> None:
        memory.filled_by = number if is_random else None
        if memory.set_by is None or number == memory.set_by or memory.lost_by is not None:
            return
        if self._was_used(memory.set_call):
            memory.set_by = None
        else:
            memory.lost_by = number

    def _was_used(self, call: int) -> bool:
        """Return whether a call has read what another has written."""
        later = self._flow.calls[call + 1 :]
        return any(one.name not in _NO_USE and any(read.call == call for read in one.reads) for one in later)

    def _look_up(self, args: Sequence[Any], kwargs: Mapping[str, Any], number: int | None) -> None:
        """Look at the padding row of the table of a lookup."""
        row = argument(args, kwargs, 2, "padding_idx")
        seen = self._lookups.setdefault(number, _Padding())
        if type(row) is not int or seen.filled_by is not None or len(args) < 2:
            return
        ids, table = args[:2]
        key = storage_key(table) if isinstance(table, torch.Tensor) and table.requires_grad and table.is_cpu else None
        memory = None if key is None else self._memory.get(key)
        if memory is None or memory.storage() is None or memory.filled_by is None or not isinstance(ids, torch.Tensor):
            return
        row += table.shape[0] if row < 0 else 0
        with unobserved():
            if self._limit.allows(ids, number) and ops.item(ops.any(ops.eq(ids, row))):
                values = ops.getitem(ops.detach(table), row)
                if is_small_and_readable(values, MOST_ELEMENTS) and ops.item(ops.any(ops.ne(values, 0))):
                    seen.filled_by, seen.row = memory.filled_by, row

    def facts(self, frame_of: Callable[[int | None], Frame | None]) -> Iterator[object]:
        """Yield what was overwritten."""
        by_line: dict[int, list[_Memory]] = {}
        for memory in self._memory.values():
            if memory.set_by is not None and memory.is_matrix:
                by_line.setdefault(memory.set_by, []).append(memory)
        for line, written in by_line.items():
            if all(one.lost_by is not None for one in written):
                yield OverwrittenValues(
                    num_tensors=len(written), set=frame_of(line), overwritten=frame_of(written[0].lost_by)
                )
        leaves_out = any(call.name.strip("_") in _LEAVES_OUT for call in self._flow.calls)
        for number, seen in self._lookups.items():
            if seen.filled_by is not None and not leaves_out:
                yield FilledPadding(row=seen.row, filled=frame_of(seen.filled_by), used=frame_of(number))


def _is_initializing() -> bool:
    """Return whether a function of torch.nn.init copies the values that it has drawn."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_FEW_FRAMES):
        if frame is None:
            return False
        if frame.f_code.co_filename == init.__file__:
            return True
        frame = frame.f_back
    return False
