"""Keep in this process what a program saves on fake tensors.

NOTE [Files of fake tensors]
A training loop saves its model, `torch.save(model.state_dict(), "model.pt")`. Fake tensors have nothing to write, and
must not replace what is in the file: it may be the result of days. So no file is written; what was saved is kept here
under its path, as its pickle and the sizes of its tensors, and is loaded, moved and copied from there. Into a file that
the program has opened itself, such as a BytesIO, only a number is written by which it is found again.
"""

import io
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import nn

from gradinspect.kept_files.run import about_to_write
from gradinspect.recording.values.storages import storage_of
from gradinspect.torch_api.fakes import FakeTensor, device_of, unset_fake_temporarily
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.classes import is_one_of
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.patching.patches import Patch
from gradinspect.torch_api.tensors import key_of_storage

_MARK = b"gradinspect: saved on fake tensors, as number %20d\n"
_MARK_SIZE = len(_MARK % 0)
_MOVES = ((os, "replace"), (os, "rename"), (shutil, "move"))
_COPIES = ((shutil, "copyfile"), (shutil, "copy"), (shutil, "copy2"))
_Function: TypeAlias = Callable[..., Any]


class _KeptTensor(NamedTuple):
    """What is known of a fake tensor; or a copy of a real one."""

    storage: int  # its number among those of one file: tensors may share it
    num_bytes: int  # of the storage
    dtype: torch.dtype
    device: torch.device
    layout: tuple[tuple[int, ...], tuple[int, ...], int]  # shape, strides, offset
    requires_grad: bool
    is_parameter: bool
    real: torch.Tensor | None = None


class _Saved(NamedTuple):
    """One object that was saved."""

    pickled: bytes
    tensors: tuple[_KeptTensor, ...]
    pickle_module: Any


class SavedFiles:
    """Stands in for files with fake tensors. NOTE [Files of fake tensors]."""

    def __init__(self) -> None:
        """Start empty."""
        self._by_path: dict[str, _Saved] = {}
        self._by_number: list[_Saved] = []

    def patches(self) -> Iterator[Patch]:
        """Yield the patches of what saves, loads, moves and copies files."""
        for holder in (torch, torch.serialization):
            yield Patch(holder, "save", self._saving)
            yield Patch(holder, "load", self._loading)
        for holder, name in _MOVES:
            yield Patch(holder, name, lambda original: self._moving(original, keeps=False))
        for holder, name in _COPIES:
            yield Patch(holder, name, lambda original: self._moving(original, keeps=True))

    def _saving(self, original: _Function) -> _Function:
        def save(obj: Any, f: Any, pickle_module: Any = pickle, *args: Any, **kwargs: Any) -> Any:
            saved = _saved(obj, pickle_module)
            if saved is None:
                return original(obj, f, pickle_module, *args, **kwargs)
            if (path := _path_of(f)) is not None:
                self._by_path[path] = saved
                return None
            self._by_number.append(saved)
            f.write(_MARK % (len(self._by_number) - 1))
            return None

        return save

    def _loading(self, original: _Function) -> _Function:
        def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
            saved = self._found(f)
            return original(f, map_location, *args, **kwargs) if saved is None else _loaded(saved, map_location)

        return load

    def _found(self, file: Any) -> _Saved | None:
        """Find what was saved there; a file of which nothing is known stays where it is read next."""
        if (path := _path_of(file)) is not None:
            return self._by_path.get(path)
        try:
            begin = file.tell()
            head = file.read(_MARK_SIZE)
            if len(head) == _MARK_SIZE and head == _MARK % int(head.rpartition(b" ")[2]):
                return self._by_number[int(head.rpartition(b" ")[2])]
            file.seek(begin)
        except (AttributeError, OSError, ValueError, IndexError):
            file.seek(begin)
        return None

    def _moving(self, original: _Function, *, keeps: bool) -> _Function:
        def move(src: Any, dst: Any, *args: Any, **kwargs: Any) -> Any:
            source, target = _path_of(src), _path_of(dst)
            saved = self._by_path.get(source or "")
            if source is None or target is None or saved is None:
                return original(src, dst, *args, **kwargs)
            if not keeps:
                del self._by_path[source]
            if os.path.isdir(target):  # noqa: PTH112  # as shutil does, of a path in whatever form
                target = os.path.join(target, os.path.basename(source))  # noqa: PTH118, PTH119  # the same
            self._by_path[target] = saved
            return dst

        return move


def announced_writes() -> Iterator[Patch]:
    """Yield patches of what writes files unseen by Python. NOTE [Files are put back] in `kept_files`."""

    def announcing(original: _Function) -> _Function:
        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
            about_to_write(f)
            return original(obj, f, *args, **kwargs)

        return save

    for holder in (torch, torch.serialization, torch.jit):
        yield Patch(holder, "save", announcing)


def _path_of(file: Any) -> str | None:
    """Return the whole path of a file that is given by its name; None of one that is open."""
    if not isinstance(file, str | os.PathLike):
        return None
    return os.path.realpath(os.fsdecode(file))


def _saved(obj: Any, pickle_module: Any) -> _Saved | None:
    """Take an object apart; None if it has no fake tensors."""
    kept: list[_KeptTensor] = []
    numbers: dict[int, int] = {}  # of tensors
    storages: dict[int, int] = {}
    held: list[Any] = []  # a key is that of one storage while it lives

    class Pickler(pickle_module.Pickler):  # the program's own module, as torch.save takes it
        def persistent_id(self, found: Any) -> int | None:
            if not isinstance(found, torch.Tensor) or not _is_known(found):
                return None
            if id(found) not in numbers:
                numbers[id(found)] = len(kept)
                storage = storage_of(found)
                held.extend((found, storage))
                kept.append(_kept(found, storage, storages.setdefault(key_of_storage(storage), len(storages))))
            return numbers[id(found)]

    pickled = io.BytesIO()
    try:
        Pickler(pickled, protocol=2).dump(obj)
    finally:
        held.clear()  # the class lives in a cycle until a collection
    if all(one.real is not None for one in kept):
        return None
    return _Saved(pickled.getvalue(), tuple(kept), pickle_module)


def _is_known(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a strided one of torch's own: what others consist of is saved instead of them."""
    is_own = isinstance(tensor, FakeTensor) or is_one_of(tensor, (torch.Tensor, nn.Parameter))
    return is_own and tensor.layout is torch.strided


def _kept(tensor: torch.Tensor, storage: Any, number: int) -> _KeptTensor:
    with unset_fake_temporarily(), unobserved():
        is_fake = isinstance(tensor, FakeTensor)
        return _KeptTensor(
            storage=number,
            num_bytes=storage.nbytes(),
            dtype=tensor.dtype,
            device=device_of(tensor),
            layout=(tuple(tensor.shape), tuple(ops.stride(tensor)), int(ops.storage_offset(tensor))),
            requires_grad=tensor.requires_grad,
            is_parameter=isinstance(tensor, nn.Parameter),
            real=None if is_fake else ops.clone(ops.detach(tensor)),
        )


def _loaded(saved: _Saved, map_location: Any) -> Any:
    """Rebuild an object in new memory."""
    storages: dict[int, torch.Tensor] = {}
    made: dict[int, torch.Tensor] = {}

    class Unpickler(saved.pickle_module.Unpickler):  # type: ignore[name-defined]  # as above
        def persistent_load(self, number: int) -> torch.Tensor:
            if number not in made:
                made[number] = _made(saved.tensors[number], storages, map_location)
            return made[number]

    try:
        return Unpickler(io.BytesIO(saved.pickled)).load()
    finally:
        made.clear()  # the class lives in a cycle until a collection
        storages.clear()


def _made(kept: _KeptTensor, storages: dict[int, torch.Tensor], map_location: Any) -> torch.Tensor:
    if kept.real is not None:
        with unset_fake_temporarily(), unobserved():  # what is kept here is not memory of the program
            tensor = ops.clone(kept.real)
    else:
        tensor = _made_fake(kept, storages, map_location)
    if kept.is_parameter:
        return nn.Parameter(tensor, requires_grad=kept.requires_grad)
    return tensor.requires_grad_(kept.requires_grad)


def _made_fake(kept: _KeptTensor, storages: dict[int, torch.Tensor], map_location: Any) -> torch.Tensor:
    if kept.storage not in storages:
        device = _place_of(kept.device, map_location)
        storages[kept.storage] = torch.empty(kept.num_bytes, dtype=torch.uint8, device=device)
    with torch.no_grad():
        whole = storages[kept.storage].view(kept.dtype) if kept.num_bytes else torch.empty(0, dtype=kept.dtype)
        return torch.as_strided(whole, *kept.layout).detach()


def _place_of(device: torch.device, map_location: Any) -> torch.device:
    """Return where a tensor is loaded to; what a function of the program would say of its memory is not known."""
    if isinstance(map_location, dict):
        map_location = map_location.get(str(device))
    return torch.device(map_location) if isinstance(map_location, str | torch.device | int) else device
