"""The memory behind tensors: one number per storage, bytes counted once."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

import torch

from gradinspect.graph import Origin, Storage
from gradinspect.recording.variables import elements_of, isinstance_safely
from gradinspect.torch_api.tensors import key_of_storage, sparse_parts, unwrapped

# If tensors of several origins share a storage, the lowest one counts.
_RANK: dict[Origin | None, int] = {
    "parameter": 0, "buffer": 1, "activation": 2, "output": 3, "input": 4, None: 5,
}  # fmt: skip


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

    def look_up(self, tensor: torch.Tensor, origin: Origin | None = None) -> StorageEntry:
        """Return the storage of a tensor, numbering it if it is new.

        Raises:
            RuntimeError, NotImplementedError: It has none: sparse, mkldnn.
        """
        try:
            storage = tensor.untyped_storage()
        except (RuntimeError, NotImplementedError):
            storage = _storage_behind_functorch(tensor)
        key = key_of_storage(storage)
        entry = self._entries.get(key)
        if entry is None:
            known_origin, name = self._known.get(key, (origin, None))
            entry = StorageEntry(storage, len(self._entries), tensor.device, known_origin, name)
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
        for tensor in plain_tensors(value):
            try:
                numbers[self.look_up(tensor).number] = None
            except (RuntimeError, NotImplementedError):
                continue
        return tuple(numbers)

    def keys(self) -> tuple[int, ...]:
        """List what tells the storages apart, in the order of their numbers."""
        return tuple(self._entries)

    def records(self) -> tuple[Storage, ...]:
        """Make the records, in the order of their numbers."""
        devices: dict[object, str] = {}
        records = []
        for entry in self._entries.values():
            device = devices.get(entry.device) or devices.setdefault(entry.device, str(entry.device))
            records.append(
                Storage(num_bytes=_num_bytes(entry.storage), device=device, origin=entry.origin, name=entry.name)
            )
        return tuple(records)


def _num_bytes(storage: Any) -> int:
    num_bytes = storage.nbytes()
    return num_bytes if type(num_bytes) is int else 0  # a symbolic size has no number yet


def _storage_behind_functorch(tensor: torch.Tensor) -> Any:
    """Return the storage inside a tensor wrapped by torch.func, at any depth.

    Raises:
        RuntimeError, NotImplementedError: It is not wrapped, or the inner tensor has none.
    """
    return unwrapped(tensor).untyped_storage()


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
        return tensor.untyped_storage()
    except (RuntimeError, NotImplementedError, TypeError):
        return None


def storage_key(tensor: torch.Tensor) -> int | None:
    """Return a key that is equal for tensors that share memory, while they are alive."""
    storage = storage_of(tensor)
    return None if storage is None else key_of_storage(storage)


def plain_tensors(value: object) -> Iterator[torch.Tensor]:
    """Yield the tensors with their own memory inside an object, unwrapping as needed. Runs no user code."""
    todo: list[object] = [value]
    seen: set[int] = set()
    while todo:
        item = todo.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance_safely(item, (torch.Tensor,)):
            inner = list(_inner_tensors(cast("torch.Tensor", item)))
            if inner:
                todo.extend(reversed(inner))
            else:
                yield cast("torch.Tensor", item)
        else:
            todo.extend(reversed(elements_of(item)))


def _inner_tensors(tensor: torch.Tensor) -> Iterable[torch.Tensor]:
    """Return the inner tensors of a sparse tensor or a wrapper subclass; nothing for a plain tensor."""
    layout = tensor.layout
    if layout is torch.strided:
        names = _flattened_names(tensor) if type(tensor) is not torch.Tensor else ()
        return [part for name in names if isinstance(part := getattr(tensor, name), torch.Tensor)]
    with torch.no_grad():
        if layout is torch.sparse_coo:
            return sparse_parts(tensor)
        if layout in (torch.sparse_csr, torch.sparse_bsr):
            return (tensor.crow_indices(), tensor.col_indices(), tensor.values())
        if layout in (torch.sparse_csc, torch.sparse_bsc):
            return (tensor.ccol_indices(), tensor.row_indices(), tensor.values())
        names = _flattened_names(tensor)
        return [part for name in names if isinstance(part := getattr(tensor, name), torch.Tensor)]


def has_inner_tensors(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a wrapper subclass, composed of others."""
    return type(tensor) is not torch.Tensor and hasattr(type(tensor), "__tensor_flatten__")


def _flattened_names(tensor: torch.Tensor) -> Iterable[str]:
    """Return the attributes with the inner tensors of a traceable wrapper subclass."""
    if not has_inner_tensors(tensor):
        return ()
    names: Iterable[str] = tensor.__tensor_flatten__()[0]
    return names
