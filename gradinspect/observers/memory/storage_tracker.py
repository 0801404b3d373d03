"""Follow each storage of a program on fake tensors, from the operator that makes it until nobody holds it.

NOTE [Gradients that the engine adds]
Where two gradients meet, the engine adds the second one to the first in place, if nobody else holds the first. Under a
dispatch mode it never does, so that a step would seem to need more than it does. The addition is then done in place
here. It is known by its first argument, which another node has made and which is held exactly as often as in a backward
that was run for the purpose.
Source: torch/csrc/autograd/input_buffer.cpp, torch 2.13.

NOTE [Gradients that are filled]
The backward of `x[rows]` makes zeros, and adds to some of them in place. Under a dispatch mode it makes a second tensor
of these, so that a step would seem to need one gradient more. It is then done in place here. So it is for what selects
in other ways: `gather`, `topk`, `index_select`, a mask.
Source: areAnyTensorSubclassLike in torch/csrc/autograd/FunctionsManual.cpp, torch 2.13.

NOTE [Numbers that nodes keep]
`x * 0.5` and `x *= 0.5` have a tensor made of the number, which their node saves. No operator that we see makes it, and
the node is there only when the operator has returned: so before the next one, what the result's node keeps is counted.
Backward computes with this tensor, so that its kernel makes only a copy of it, if that has another dtype. A view that
was written in place is left out, and its 8 bytes: torch makes its node anew when it is asked for, by operators that
come back to us under a lock of the view: we would wait forever. The number is kept by a node that nothing shows.
For the same view torch shows another node for a fake tensor, which replays the view, and not AsStridedBackward0, which
makes a tensor as large as the base: a peak that is there is low by it.
Source: VariableHooks::grad_fn in torch/csrc/autograd/variable.cpp, torch 2.13.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache
from sys import getrefcount
from types import TracebackType
from typing import Any, Self, TypeAlias
from weakref import ref

import torch
from torch.autograd.function import BackwardCFunction

from gradinspect.fake.read_values import TellScratch
from gradinspect.observers.memory.device_ledgers import DeviceLedgers
from gradinspect.observers.memory.kernel_scratch import KernelScratch
from gradinspect.observers.memory.storage_ledger import Allocation, StorageMaker
from gradinspect.observers.memory.storage_purposes import Label
from gradinspect.recording.values.storages import plain_tensors, storage_of
from gradinspect.torch_api.devices.allocations import (
    note_unknown_allocations,
    num_uses,
    running_node,
    watched_allocations,
)
from gradinspect.torch_api.devices.profiling import device_label
from gradinspect.torch_api.fakes import FakeTensor, answers_device, device_of, is_on_meta
from gradinspect.torch_api.modes import TorchDispatchMode, without_dispatch_modes
from gradinspect.torch_api.operators import operator_name, shows_its_arguments
from gradinspect.torch_api.patching.classes import identities, is_one_of
from gradinspect.torch_api.patching.originals import get_default_dtype, gradients_of, is_grad_enabled, ops, with_grad
from gradinspect.torch_api.saved import raw_saved
from gradinspect.torch_api.tensors import grad_fn_of, is_view, key_of_storage

_ADD = torch.ops.aten.add.Tensor
_ADD_IN_PLACE = torch.ops.aten.add_.Tensor
_FILL_IN_PLACE = {  # NOTE [Gradients that are filled]
    torch.ops.aten.index_put.default: torch.ops.aten.index_put_.default,
    torch.ops.aten.masked_scatter.default: torch.ops.aten.masked_scatter_.default,
    torch.ops.aten.scatter_add.default: torch.ops.aten.scatter_add_.default,
    torch.ops.aten.scatter.src: torch.ops.aten.scatter_.src,
    torch.ops.aten.index_add.default: torch.ops.aten.index_add_.default,
    torch.ops.aten.put.default: torch.ops.aten.put_.default,
}
_RECORD_STREAM = torch.ops.aten.record_stream.default
_TAKES_NUMBERS = frozenset((
    "add", "sub", "rsub", "mul", "div", "remainder", "fmod", "floor_divide", "xlogy", "eq", "ne", "lt", "le", "gt",
    "ge",
))  # fmt: skip
_KEEPS_NUMBER = frozenset((
    torch.ops.aten.mul.Tensor, torch.ops.aten.mul_.Tensor, torch.ops.aten.div.Tensor, torch.ops.aten.div_.Tensor,
))  # fmt: skip
_NUMBER = "_saved_other"  # where their nodes have it
_WITH_KEPT_NUMBER = frozenset(("MulBackward0", "DivBackward0"))
_TAKES_REAL = frozenset((torch.ops.aten.lift_fresh.default,))  # makes a real tensor fake: it is the same one
_SETS_MEMORY = frozenset((  # of its first argument, such as to what a worker has put into memory that it shares
    torch.ops.aten.set_.source_Storage, torch.ops.aten.set_.source_Storage_storage_offset,
    torch.ops.aten.set_.source_Tensor,
))  # fmt: skip

_NEVER_REAL = identities(FakeTensor, bool, int, float, type(None), torch.dtype)  # nearly all arguments
_NOTHING = nullcontext()

_MakerOf: TypeAlias = Callable[[], StorageMaker]  # of an operator
_Held: TypeAlias = tuple[tuple[int, int] | None, int]  # in C++, in Python


class _Maker:
    """Finds what runs when it is asked for the first time.

    All that an operator makes is made by the same line, which costs as much to find as the stack is deep.
    """

    __slots__ = ("_find", "_found")

    def __init__(self, find: _MakerOf) -> None:
        self._find = find
        self._found: StorageMaker | None = None

    def __call__(self) -> StorageMaker:
        if self._found is None:
            self._found = self._find()
        return self._found


class StorageTracker(TorchDispatchMode):
    """Keeps a ledger while it is active. Use it as a context manager, inside the fake mode."""

    def __init__(
        self,
        ledgers: DeviceLedgers,
        maker: Callable[[str, Any], StorageMaker],
        *,
        counts_numbers: bool = True,
        tells_scratch: Callable[[TellScratch], None] | None = None,
        scratch: Mapping[str, int] | None = None,
    ) -> None:
        """Set up.

        Args:
            ledgers: What is written.
            maker: Says what runs now, given the operator's name and the backward node that runs.
            counts_numbers: Whether kernels make tensors of the numbers that they are given, as those of the CPU do.
            tells_scratch: Gets a function that notes scratch memory of kernels, as measured in real steps.
            scratch: What earlier runs of the program have measured of kernels.
        """
        super().__init__()
        note_unknown_allocations()
        self._ledgers = ledgers
        self._maker = maker
        self._allocations: dict[int, tuple[Allocation, Any]] = {}  # by the key of the storage, with its finalizer
        self._held_once = _calibrated()
        self._counts_numbers = counts_numbers
        self._may_keep: list[tuple[Any, StorageMaker]] = []  # results. NOTE [Numbers that nodes keep]
        self._tells_scratch = tells_scratch if counts_numbers else None
        self._scratch = KernelScratch(scratch) if counts_numbers else None
        self._patches = ExitStack()
        self._last_node: Any = None
        self._made_by_last: set[int] = set()  # keys of what the node that runs has made

    def __enter__(self) -> Self:
        """Start following allocations."""
        self._patches.enter_context(watched_allocations(self._resized, self._made))
        if self._tells_scratch is not None:
            self._tells_scratch(self._has_scratch)
        super().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop following."""
        super().__exit__(kind, error, trace)
        self._patches.close()

    @property
    def measured_scratch(self) -> Mapping[str, int]:
        """What was measured of kernels by now, for later runs of the program."""
        return {} if self._scratch is None else self._scratch.measured

    def label(self, labels: Iterable[Label]) -> None:
        """Note what the memory of some tensors is for."""
        for label in labels:
            purpose = label.purpose
            for part in plain_tensors(label.tensor):
                storage = storage_of(part)
                if storage is None:
                    continue
                if label.kind == "saved" and not ops.dim(part) and not isinstance(part, FakeTensor):
                    self._made(part)  # a number that a node keeps as a tensor, which no operator has made
                if key_of_storage(storage) in self._allocations:
                    self._allocations[key_of_storage(storage)][0].label(purpose)

    def allocations_of(self, tensors: Iterable[torch.Tensor]) -> list[Allocation]:
        """Return what is known of the memory of some tensors."""
        keys = [key_of_storage(storage) for tensor in tensors if (storage := storage_of(tensor)) is not None]
        return [self._allocations[key][0] for key in dict.fromkeys(keys) if key in self._allocations]

    def moved_on(self) -> None:
        """Do nothing: what runs is asked for whenever something is made."""

    def settle(self) -> None:
        """Do nothing: the ledger is always up to date."""

    def __torch_dispatch__(
        self, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operator, and add what it has made."""
        if answers_device(func, args):
            return args[0].fake_device
        if func.namespace == "profiler":  # a range that begins or ends, as around each step of an optimizer
            with without_dispatch_modes():
                return func(*args, **(kwargs or {}))
        if any(kind is not FakeTensor for kind in types):
            return NotImplemented  # a subclass calls operators of its own, which are seen
        if not self._ledgers.is_open:  # the program goes on to its next backward call, where it can be stopped
            return func(*args, **(kwargs or {}))
        node = self._begun()
        if func is _ADD and node is not None and not kwargs and self._is_of_engine(args):
            return args[0] if _is_alike(*args[:2]) else _ADD_IN_PLACE(*args)  # which changes values, and there are none
        func = self._in_place_if_filled(func, args, node)
        if func is _RECORD_STREAM:
            self._use_elsewhere(*args[:2])
        brought = self._note_real(func, args)
        maker = _Maker(lambda: self._maker(str(func), node))
        self._add_scratch(func, args, kwargs or {}, maker)
        with self._numbers_as_tensors(func, args, node, maker):
            result = func(*args, **(kwargs or {}))
            is_set = func in _SETS_MEMORY and not isinstance(args[0], FakeTensor)
            twin_of = brought if shows_its_arguments(func) and not is_set else None
            for tensor in plain_tensors(result):
                self._note(tensor, maker, twin_of)
            self._note_number(func, args, result, maker)
            return result

    def _begun(self) -> Any:
        """Note that an operator begins, and return the node that runs."""
        if self._may_keep:
            self._count_kept_numbers()
        node = running_node()
        if node is not self._last_node:
            self._last_node = node
            self._made_by_last.clear()
        return node

    def _note_number(self, func: Any, args: tuple[Any, ...], result: Any, maker: _MakerOf) -> None:
        """Note a result whose node may keep a number. NOTE [Numbers that nodes keep]."""
        if func in _KEEPS_NUMBER and len(args) > 1 and is_one_of(args[1], (int, float)) and is_grad_enabled():
            self._may_keep.append((ref(result), maker()))

    def _count_kept_numbers(self) -> None:
        """Count the numbers that nodes keep as tensors. NOTE [Numbers that nodes keep]."""
        results, self._may_keep = self._may_keep, []
        for reference, maker in results:
            result = reference()
            node = None if result is None or is_view(result) else grad_fn_of(result)
            kept = raw_saved(node, _NUMBER).data if node is not None and node.name() in _WITH_KEPT_NUMBER else None
            if isinstance(kept, torch.Tensor) and not isinstance(kept, FakeTensor):
                self._made(kept, maker)

    def _use_elsewhere(self, tensor: torch.Tensor, stream: Any) -> None:
        storage = storage_of(tensor)
        found = None if storage is None else self._allocations.get(key_of_storage(storage))
        if found is not None:
            self._ledgers.use_elsewhere(found[0], stream.stream_id)

    def _add_scratch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], maker: _MakerOf) -> None:
        """Count what a kernel has at its peak, its results included, before those are counted."""
        num_bytes = 0 if self._scratch is None else self._scratch.bytes_of(func, args, kwargs)
        if num_bytes:
            self._ledgers.end(self._ledgers.begin(num_bytes, maker()))

    def _has_scratch(self, func: Any, num_bytes: int) -> None:
        """Count what a kernel had at its peak in a real step."""
        self._ledgers.end(self._ledgers.begin(num_bytes, self._maker(str(func), running_node())))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader of the result must know."""
        return () if self._scratch is None else tuple(self._scratch.notes)

    def _note(self, tensor: torch.Tensor, maker: _MakerOf, twin_of: Allocation | None) -> None:
        """Add the memory of a result, unless it is known; it may have another size now."""
        storage = None if is_on_meta(tensor) else storage_of(tensor)
        if storage is None:
            return
        found = self._allocations.get(key_of_storage(storage))
        if found is None and twin_of is not None:
            self._follow(storage, twin_of, is_own=False)
        elif found is None:
            self._add(tensor, storage, maker())
        elif found[0].num_bytes != _size(storage):
            self._ledgers.resize(found[0], _size(storage), maker())

    def _numbers_as_tensors(
        self, func: Any, args: tuple[Any, ...], node: Any, maker: _MakerOf
    ) -> AbstractContextManager[None]:
        """Count the tensors that a kernel makes of the numbers it is given, while it runs."""
        sizes = _bytes_of_numbers(func, args) if self._counts_numbers else ()
        if sizes and node is not None and node.name() in _WITH_KEPT_NUMBER:
            sizes = sizes[1:]
        return self._counted(sizes, maker) if sizes else _NOTHING

    @contextmanager
    def _counted(self, sizes: Iterable[int], maker: _MakerOf) -> Iterator[None]:
        allocations = [self._ledgers.begin(size, maker()) for size in sizes]
        try:
            yield
        finally:
            for allocation in allocations:
                self._ledgers.end(allocation)

    def _is_of_engine(self, args: tuple[Any, ...]) -> bool:
        """Return whether the engine adds to a gradient that only it holds. NOTE [Gradients that the engine adds]."""
        first = args[0]
        if first.layout is not torch.strided:
            return False
        key = key_of_storage(ops.untyped_storage(first))
        is_alone = self._held_once == (num_uses(first), getrefcount(first))
        return is_alone and key in self._allocations and key not in self._made_by_last and not is_grad_enabled()

    def _in_place_if_filled(self, func: Any, args: tuple[Any, ...], node: Any) -> Any:
        """Have a node of torch's own fill a tensor that it has just made. NOTE [Gradients that are filled]."""
        is_ours = func not in _FILL_IN_PLACE or node is None or isinstance(node, BackwardCFunction) or is_grad_enabled()
        if (
            is_ours
            or args[0].layout is not torch.strided
            or key_of_storage(ops.untyped_storage(args[0])) not in self._made_by_last
        ):
            return func
        return _FILL_IN_PLACE[func]

    def _note_real(self, func: Any, args: tuple[Any, ...]) -> Allocation | None:
        """Add real tensors that the program has brought along, and return the allocation of the last one.

        The fake mode works on a fake twin of each, which stands for the same memory.
        """
        allocation = None
        for tensor in plain_tensors([arg for arg in args if id(type(arg)) not in _NEVER_REAL]):
            storage = None if isinstance(tensor, FakeTensor) else storage_of(tensor)
            if storage is None or (func in _TAKES_REAL and storage.resizable()):
                continue
            if key_of_storage(storage) not in self._allocations:
                self._add_brought(tensor, storage)
            allocation = self._allocations[key_of_storage(storage)][0]
        return allocation

    def _add_brought(self, tensor: torch.Tensor, storage: Any) -> None:
        """Add a real tensor; one that shows the memory of an array has none of its own from torch's allocator.

        Memory that processes share, as batches of a loader's workers are, is not resizable either, and counts.
        """
        if storage.resizable() or storage.is_shared():
            self._add(tensor, storage, self._maker("", None))
        else:
            self._follow(storage, self._ledgers.begin(0, self._maker("", None)), is_own=True)

    def _add(self, tensor: torch.Tensor, storage: Any, maker: StorageMaker) -> None:
        self._made_by_last.add(key_of_storage(storage))
        device = device_label(device_of(tensor))
        self._follow(storage, self._ledgers.begin(_size(storage), maker, device), is_own=True)

    def _follow(self, storage: Any, allocation: Allocation, *, is_own: bool) -> None:
        key = key_of_storage(storage)

        def ended(_reference: object) -> None:
            del self._allocations[key]
            if is_own:
                self._ledgers.end(allocation)

        self._allocations[key] = (allocation, ref(storage, ended))

    def _resized(self, storage: Any) -> None:
        found = self._allocations.get(key_of_storage(storage))
        if found is not None:
            self._ledgers.resize(found[0], _size(storage), self._maker("resize_", None))

    def _made(self, tensor: torch.Tensor, maker: StorageMaker | None = None) -> None:
        storage = storage_of(tensor)
        if storage is not None and key_of_storage(storage) not in self._allocations:
            self._add(tensor, storage, maker or self._maker("", None))


@cache
def _takes_numbers(func: Any) -> bool:
    """Return whether the kernel of an operator makes tensors of numbers."""
    return operator_name(func).rpartition(".")[2].rstrip("_").removeprefix("_foreach_") in _TAKES_NUMBERS


def _bytes_of_numbers(func: Any, args: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the sizes of what the CPU kernel of an elementwise operator makes of a number: a tensor, and its copy.

    The copy is of the dtype that the operator computes in. Source: aten/src/ATen/TensorIterator.cpp, torch 2.13.
    """
    if len(args) < 2 or not _takes_numbers(func):
        return ()
    first = args[0][0] if isinstance(args[0], list | tuple) and args[0] else args[0]
    second = args[1][0] if isinstance(args[1], list | tuple) and args[1] else args[1]
    if not is_one_of(second, (int, float)) or not isinstance(first, torch.Tensor) or first.device.type != "cpu":
        return ()
    computes_in = first.dtype if ops.is_floating_point(first) or type(second) is int else get_default_dtype()
    same = computes_in is (torch.int64 if type(second) is int else torch.float64)
    return (8,) if same else (8, computes_in.itemsize)


def _is_alike(first: Any, second: Any) -> bool:
    """Return whether two tensors look the same, so that one can be added to the other without a look at either."""
    return bool(
        type(first) is type(second) is FakeTensor
        and first.shape == second.shape
        and first.dtype is second.dtype
        and first.fake_device == second.fake_device
        and first.layout is second.layout is torch.strided
    )


def _size(storage: Any) -> int:
    num_bytes = storage.nbytes()
    return num_bytes if type(num_bytes) is int else 0  # a symbolic size has no number


class _Calibration(TorchDispatchMode):
    """Learns how often a gradient is held that only the engine holds."""

    held: _Held | None = None

    def __torch_dispatch__(
        self, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is _ADD and running_node() is not None:
            self.learn(args)
        return func(*args, **(kwargs or {}))

    def learn(self, args: tuple[Any, ...]) -> None:
        """Count as `StorageTracker` does, at the same depth of calls."""
        first = args[0]
        key_of_storage(ops.untyped_storage(first))
        self.held = (num_uses(first), getrefcount(first))


def _calibrated() -> _Held | None:
    mode = _Calibration()
    with with_grad(), mode:
        leaf = ops.zeros(2, requires_grad=True, device=torch.device("cpu"))
        twice = ops.exp(leaf)
        gradients_of(ops.sum(ops.add(ops.sin(twice), ops.cos(twice))), leaf)
    return mode.held if mode.held is not None and mode.held[0] is not None else None
