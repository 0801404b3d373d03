"""The memory behind tensors: one number per storage, bytes counted once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import torch

from gradinspect.graph import Origin, Storage
from gradinspect.recording.names.variables import elements_of, isinstance_safely
from gradinspect.torch_api.fakes import FakeTensor
from gradinspect.torch_api.patching.classes import is_one_of
from gradinspect.torch_api.patching.originals import ops, without_grad
from gradinspect.torch_api.tensors import key_of_storage, sparse_parts, unwrapped

# If tensors of several origins share a storage, the lowest one counts.
_RANK: dict[Origin | None, int] = {
    "parameter": 0, "buffer": 1, "activation": 2, "output": 3, "input": 4, None: 5,
}  # fmt: skip


MOST_NESTED = 100  # wrappers in each other: one may make another whenever it is asked what is in it

# Those of torch: a subclass may have some of its own, which fail.
layout_of: Callable[[torch.Tensor], Any] = torch.Tensor.layout.__get__
_storage_of: Callable[[torch.Tensor], Any] = ops.untyped_storage
_PLAIN = (torch.Tensor, torch.nn.Parameter, FakeTensor)


class StorageEntry:
    """One storage of a capture."""

    __slots__ = ("device", "name", "number", "origin", "storage")

    def __init__(self, storage: Any, number: int, device: Any, origin: Origin | None, name: str | None) -> None:
        """Also hold the live storage, because its key is unique only while it is alive."""
        self.device = device  # of the tensor; a fake tensor's storage is on meta
        self.storage = storage
        self.number = number
        self.origin = origin
        self.name = name  # of the parameter, buffer or variable it belongs to


class StorageTable:
    """Numbers the storages of one capture in order of appearance."""

    def __init__(self, known: dict[int, tuple[Origin, str]], inputs: frozenset[int] = frozenset()) -> None:
        """Start empty.

        Args:
            known: Storage key -> origin and name, for parameters, buffers and the user's variables.
            inputs: Storage keys of the tensors that models were given.
        """
        self._inputs = inputs
        self._known = known
        self._entries: dict[int, StorageEntry] = {}
        self._failed: dict[type, None] = {}  # classes of tensors that did not say what they are composed of

    def look_up(self, tensor: torch.Tensor, origin: Origin | None = None) -> StorageEntry:
        """Return the storage of a tensor, numbering it if it is new.

        Raises:
            RuntimeError, NotImplementedError: It has none: sparse, mkldnn.
        """
        try:
            storage = _storage_of(tensor)
        except (RuntimeError, NotImplementedError):
            storage = _storage_behind_functorch(tensor)
        key = key_of_storage(storage)
        entry = self._entries.get(key)
        if entry is None:
            known_origin, name = self._known.get(key, (origin, None))
            entry = StorageEntry(storage, len(self._entries), device_of(tensor), known_origin, name)
            self._entries[key] = entry
        elif entry.origin is not origin and entry.name is None and _RANK[origin] < _RANK[entry.origin]:
            entry.origin = origin
        return entry

    def is_from_outside(self, key: int) -> bool:
        """Return whether a storage is not what a model made for itself: its argument, or it has a name."""
        return key in self._inputs or key in self._known

    def numbers_within(self, value: object) -> tuple[int, ...]:
        """Number every storage in an object: a container, a sparse tensor, a wrapper subclass."""
        numbers: dict[int, None] = {}
        for tensor in plain_tensors(value, self._note_failed):
            try:
                numbers[self.look_up(tensor).number] = None
            except (RuntimeError, NotImplementedError):
                continue
        return tuple(numbers)

    def _note_failed(self, kind: type) -> None:
        self._failed[kind] = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say whose memory is not counted."""
        return tuple(
            f"What is inside of '{kind.__module__}.{kind.__qualname__}' is not counted: its __tensor_flatten__ failed."
            for kind in self._failed
        )

    def keys(self) -> tuple[int, ...]:
        """List what identifies the storages, in the order of their numbers."""
        return tuple(self._entries)

    def records(self) -> tuple[Storage, ...]:
        """Make the records, in the order of their numbers; storages that look alike share one."""
        devices: dict[object, str] = {}
        known: dict[Storage, Storage] = {}
        records = []
        for entry in self._entries.values():
            device = devices.get(entry.device) or devices.setdefault(entry.device, str(entry.device))
            record = Storage(num_bytes=_num_bytes(entry.storage), device=device, origin=entry.origin, name=entry.name)
            records.append(known.setdefault(record, record))
        return tuple(records)


def _num_bytes(storage: Any) -> int:
    num_bytes = storage.nbytes()
    return num_bytes if type(num_bytes) is int else 0  # a symbolic size has no number yet


def _storage_behind_functorch(tensor: torch.Tensor) -> Any:
    """Return the storage inside a tensor wrapped by torch.func, at any depth.

    Raises:
        RuntimeError, NotImplementedError: It is not wrapped, or the inner tensor has none.
    """
    return _storage_of(unwrapped(tensor))


def device_of(tensor: torch.Tensor) -> Any:
    """Return the device of a tensor, also if a subclass has a property that fails."""
    try:
        return tensor.device
    except Exception:
        return torch.Tensor.device.__get__(tensor)


def storages_within(value: object) -> Iterator[Any]:
    """Yield the storages of an object: a tensor, a sparse one, one wrapped by torch.func, or a container."""
    for tensor in plain_tensors(value):
        try:
            yield _storage_behind_functorch(tensor)
        except (RuntimeError, NotImplementedError):
            continue


def storage_of(tensor: torch.Tensor) -> Any:
    """Return the memory that a tensor shows; None of one that has none of its own."""
    try:
        return _storage_of(tensor)
    except (RuntimeError, NotImplementedError, TypeError):
        return None


def memory_of(tensor: torch.Tensor) -> Any:
    """Return the memory that a tensor shows, inside of torch.func too; None of one that has none of its own."""
    storage = storage_of(tensor)  # which is false if it is empty, and has no truth if its size is symbolic
    return storage_of(unwrapped(tensor)) if storage is None else storage


def storage_key(tensor: torch.Tensor) -> int | None:
    """Return a key that is equal for tensors that share memory, while they are alive, inside of torch.func too."""
    storage = memory_of(tensor)
    return None if storage is None else key_of_storage(storage)


def plain_tensors(value: object, failed: Callable[[type], None] | None = None) -> Iterator[torch.Tensor]:
    """Yield the tensors with their own memory inside an object, unwrapping as needed.

    Runs no user code but the `__tensor_flatten__` of a wrapper subclass, and what is inside of one that fails is left
    out. `failed` is called with its class.
    """
    if _is_plain(value):  # nearly always
        yield cast("torch.Tensor", value)
    else:
        yield from _tensors_within(value, failed)


def _is_plain(value: object) -> bool:
    return is_one_of(value, _PLAIN) and layout_of(cast("torch.Tensor", value)) is torch.strided


def _tensors_within(value: object, failed: Callable[[type], None] | None) -> Iterator[torch.Tensor]:
    todo: list[object] = [value]
    seen: set[int] = set()
    nested: dict[int, tuple[torch.Tensor, int]] = {}  # by id, with a reference: what is in how many wrappers
    while todo:
        item = todo.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if not isinstance_safely(item, (torch.Tensor,)):
            todo.extend(reversed(elements_of(item)))
            continue
        tensor = cast("torch.Tensor", item)
        _, nesting = nested.get(id(tensor), (None, 0))
        try:
            inner = _inner_tensors(tensor) if nesting < MOST_NESTED else None
        except Exception:  # code of the program
            inner = None
        if inner is None:
            if failed is not None:
                failed(type(tensor))
        elif inner:
            nested.update((id(part), (part, nesting + 1)) for part in inner)
            todo.extend(reversed(inner))
        else:
            yield tensor


def _inner_tensors(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    """Return the inner tensors of a sparse tensor or a wrapper subclass; nothing for a plain tensor.

    Raises:
        Exception: Whatever the program's own class raises.
    """
    if _is_plain(tensor):
        return ()
    layout = layout_of(tensor)
    if layout is torch.strided:
        return _flattened(tensor)
    with without_grad():
        if layout is torch.sparse_coo:
            return sparse_parts(tensor)
        if layout in (torch.sparse_csr, torch.sparse_bsr):
            return (ops.crow_indices(tensor), ops.col_indices(tensor), ops.values(tensor))
        if layout in (torch.sparse_csc, torch.sparse_bsc):
            return (ops.ccol_indices(tensor), ops.row_indices(tensor), ops.values(tensor))
        return _flattened(tensor)


def has_inner_tensors(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a wrapper subclass, composed of others."""
    return type(tensor) is not torch.Tensor and hasattr(type(tensor), "__tensor_flatten__")


def _flattened(tensor: torch.Tensor) -> Sequence[torch.Tensor]:
    """Return the inner tensors of a traceable wrapper subclass, which its `__tensor_flatten__` names."""
    if not has_inner_tensors(tensor):
        return ()
    names: Iterable[str] = tensor.__tensor_flatten__()[0]
    parts = [getattr(tensor, name) for name in names]
    return [part for part in parts if isinstance(part, torch.Tensor)]
