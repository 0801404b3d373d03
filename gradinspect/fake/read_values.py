"""Answer what reads values on fake tensors with what the same program has read in real steps.

NOTE [Values of real steps]
Where values decide what runs next, and how large it is, `fit` runs the program with values first, and keeps what was
read: at which line, by which operator, of which shape. On fake tensors each line then gets its answers in that order.
A line that reads what it did not read there, or something of another shape, gets none: the two runs have diverged. What
a checkpointed block reads again in backward is what its forward has read.

NOTE [Sizes that kernels read]
A packed sequence says how many sequences go on at each time: a tensor on the CPU, which recurrent layers read in C++,
without an operator, and a fake tensor has nothing there. So that result stays real, with the values of real steps. What
pads the sequence again makes the lengths of all sequences, and writes them in C++: they are real too.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.nn.utils import rnn

from gradinspect.reads import MadeTensor, ReadValues, TensorRead
from gradinspect.recording.frames import is_user_file, line_at, line_name, user_frames
from gradinspect.torch_api.devices.allocations import running_node
from gradinspect.torch_api.fakes import FakeTensor, unset_fake_temporarily
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.operators import is_operator, operator_schemas, packs_sequences
from gradinspect.torch_api.patching.originals import ops

TellScratch: TypeAlias = Callable[[Any, int], None]  # an operator, and bytes
_READS_VALUES = frozenset((torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape))
_INDEX = torch.ops.aten.index.Tensor
_EMPTY = torch.ops.aten.empty.memory_format
_PADS = "pad_packed_sequence"
_MASKS = (torch.bool, torch.uint8)
_BATCH_SIZES = 1  # place among the results of what packs sequences
_PARSE: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: text == "True", "int": int, "float": float, "complex": complex,
}  # fmt: skip


class ReadPlace(NamedTuple):
    """Where something is read, and how."""

    file: str
    line: int
    op: str
    in_backward: bool


def depends_on_values(func: Any, args: tuple[Any, ...]) -> bool:
    """Return whether an operator reads values, or makes results whose size depends on them."""
    if func is packs_sequences:
        return True
    if not is_operator(func) or _READS_VALUES.isdisjoint(func.tags):
        return False
    return func is not _INDEX or any(index is not None and index.dtype in _MASKS for index in args[1])


def makes_sizes(func: Any) -> bool:
    """Return whether an operator makes results whose size depends on values."""
    return func is packs_sequences or torch.Tag.dynamic_output_shape in func.tags  # that one has no tag


def is_read_by_kernels(func: Any, place: int) -> bool:
    """Return whether a result of an operator, at its place, stays real. NOTE [Sizes that kernels read]."""
    return func is packs_sequences and place == _BATCH_SIZES


def is_written_by_kernels(func: Any, kwargs: dict[str, Any], frame: Any) -> bool:
    """Return whether an operator makes the lengths of padded sequences. NOTE [Sizes that kernels read].

    Args:
        func: The operator.
        kwargs: Its keyword arguments.
        frame: The innermost frame that runs; the operator was called within it, or within one outside of it.
    """
    if func is not _EMPTY or kwargs.get("dtype") is not torch.int64:
        return False
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        if frame.f_code.co_name == _PADS and frame.f_code.co_filename == rnn.__file__:
            return True
        frame = frame.f_back
    return False


def place_of(op: str, frame: Any) -> ReadPlace:
    """Say where a read is, from a frame outward."""
    user = next(user_frames(frame), None)
    file, line = ("", 0) if user is None else (user.f_code.co_filename, line_at(user))
    return ReadPlace(file, line, op, running_node() is not None)


def shapes_of(args: Iterable[Any]) -> tuple[tuple[int, ...], ...]:
    """List the shapes of the tensors among some arguments."""
    return tuple(tuple(arg.shape) for arg in args if isinstance(arg, torch.Tensor))


class _Memory(bytearray):
    """The memory of an array that shows a fake tensor; while it lives, so does the tensor."""

    tensor: torch.Tensor


class ReplayedReads:
    """Answers in the order of the real steps. NOTE [Values of real steps].

    Args:
        values: What was read there.
        running: Says which module runs now, and how many backward calls have begun.
    """

    def __init__(self, values: ReadValues, running: Callable[[], tuple[object, int]]) -> None:
        """Sort what was read by its place."""
        self._running = running
        self._num_steps = values.num_steps
        self._waiting: dict[ReadPlace, deque[TensorRead]] = defaultdict(deque)
        self._again: dict[tuple[object, ReadPlace], deque[TensorRead]] = defaultdict(deque)
        self._num_calls = 0
        self._lines: dict[str, None] = {}
        self._num_reads = 0
        for read in values.reads:
            self._waiting[ReadPlace(read.file, read.line, read.op, read.in_backward)].append(read)

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines whose reads were answered."""
        return tuple(self._lines)

    @property
    def num_reads(self) -> int:
        """How many were answered."""
        return self._num_reads

    @property
    def num_steps(self) -> int:
        """How many steps were made with values."""
        return self._num_steps

    def take(self, place: ReadPlace, shapes: tuple[tuple[int, ...], ...]) -> TensorRead | None:
        """Return the next answer; None if there is none, or that of something else."""
        found = self._next(place, shapes)
        return None if found is None or found.shapes != shapes else found

    def count(self, place: ReadPlace) -> None:
        """Note that an answer was needed."""
        self._num_reads += 1
        if place.file:
            self._lines.setdefault(line_name(place.file, place.line))

    def _next(self, place: ReadPlace, shapes: tuple[tuple[int, ...], ...]) -> TensorRead | None:
        waiting = self._waiting.get(place)
        if waiting and (not place.in_backward or waiting[0].shapes == shapes):
            read = waiting.popleft()
            self._remember(place, read)
            return read
        return self._read_again(place) if place.in_backward else None

    def _remember(self, place: ReadPlace, read: TensorRead) -> None:
        """Keep what a forward has read until the next backward call has ended: a block may be run again in that."""
        if place.in_backward:
            return
        module, num_calls = self._running()
        if num_calls != self._num_calls:
            self._again.clear()
            self._num_calls = num_calls
        self._again[module, place].append(read)

    def _read_again(self, place: ReadPlace) -> TensorRead | None:
        """Return what a checkpointed block has read in its forward."""
        left = self._again.get((self._running()[0], place._replace(in_backward=False)))
        return left.popleft() if left else None


def tensor_of(read: TensorRead, tensor: torch.Tensor) -> torch.Tensor | None:
    """Return a real tensor with what was read of a fake one; an array of its memory keeps both.

    Outside the fake mode.
    """
    if read.contents is None or read.kind != str(tensor.dtype):
        return None
    if not read.contents:
        return ops.empty(read.shapes[0], dtype=tensor.dtype, device=torch.device("cpu"))
    memory = _Memory(read.contents)
    memory.tensor = tensor
    real = ops.frombuffer(memory, dtype=tensor.dtype)  # which holds it
    return ops.reshape(real, read.shapes[0])


def number_of(read: TensorRead) -> Any:
    """Return the number that was read; None if it was none."""
    return _PARSE[read.kind](read.number) if read.kind in _PARSE else None


def results_of(read: TensorRead, func: Any, args: tuple[Any, ...]) -> Any:
    """Make the results of an operator, as large as they were, where its first argument is; None if it made none."""
    device = next((arg.device for arg in args if isinstance(arg, FakeTensor)), None)
    if not read.made or device is None:
        return None
    results = [_made(one, device) for one in read.made]
    return results[0] if len(operator_schemas(func, "")[0].returns) == 1 else tuple(results)


def _made(one: MadeTensor, device: torch.device) -> torch.Tensor:
    if one.contents is not None:
        with unset_fake_temporarily(), unobserved():
            real = ops.frombuffer(bytearray(one.contents), dtype=getattr(torch, one.dtype))
            return ops.clone(ops.reshape(real, one.shape))
    whole = torch.empty(one.num_elements, dtype=getattr(torch, one.dtype), device=device)
    return torch.as_strided(whole, one.shape, one.strides, one.offset)
