"""Memory that tensors share with NumPy, which writes to it without raising a version.

What an operator reads from such memory is remembered by a checksum, with the sequence numbers of the nodes that the
operator made. Before backward, what those nodes saved must still have it. The memory of `t.numpy()` is shared from that
call on; that of `torch.from_numpy(a)`, which is no torch function, cannot be resized.
"""

import ctypes
import zlib
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import nn

from gradinspect.recording.transparency.own_errors import OwnErrors
from gradinspect.recording.values.storages import storage_key
from gradinspect.torch_api.modes import Unobserved, computes_by_itself
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import is_transforming
from gradinspect.torch_api.weak import HiddenRef
from gradinspect.units import format_bytes

SHARING = frozenset(("numpy", "__array__", "__dlpack__"))
MAX_BYTES = 1 << 20  # of a tensor; larger ones are not looked at
MAX_VIEWS = 10_000
_WHAT = "tensor whose memory NumPy may write"

_View: TypeAlias = tuple[int, int, tuple[tuple[int, int], ...]]  # storage, offset, strides and sizes


class _Content(NamedTuple):
    end: int  # the sequence number after the call that read it
    checksum: int


class SharedMemory:
    """Remembers what was read from memory that is shared with NumPy."""

    def __init__(self, errors: OwnErrors | None = None) -> None:
        """Start empty; what is passed over is counted by `errors`."""
        self._errors = errors or OwnErrors()
        self._too_large: set[int] = set()  # storages of which a part was
        self._shared: dict[int, int | None] = {}  # storage -> the frame that shared it, if known
        self._contents: dict[_View, list[_Content]] = {}
        self._known: set[int] = set()  # storages with contents
        self._from_torch: dict[int, HiddenRef] = {}  # id -> data that is not from NumPy, as was found once

    def share(self, tensor: torch.Tensor, frame: int | None, clock: int) -> None:
        """Note that NumPy gets the memory of a tensor."""
        key = storage_key(tensor)
        if key is not None:
            self._shared.setdefault(key, frame)
            self._remember(tensor, clock + 1)  # for nodes that have saved it already

    def read(self, tensors: Sequence[torch.Tensor], end: int) -> None:
        """Note what an operator has read that made nodes up to a sequence number."""
        for tensor in tensors:
            if self._shared or not tensor.requires_grad:
                known = self._from_torch.get(id(tensor))
                is_torchs = known is not None and known() is tensor
                if not (is_torchs and not self._shared):
                    self._look(tensor, end, is_torchs=is_torchs)

    def knows(self, key: int) -> bool:
        """Return whether anything was read from some memory while it was shared."""
        return key in self._known

    def sharing_frame(self, key: int) -> int | None:
        """Return the frame that shared some memory, if known."""
        return self._shared.get(key)

    def is_changed(self, tensor: torch.Tensor, sequence_nr: int) -> bool:
        """Return whether a tensor differs from what it was when a node saved it; False if that is not known."""
        view = _view_of(tensor)
        contents = self._contents.get(view, ()) if self._contents and view is not None else ()
        then = next((content.checksum for content in contents if content.end > sequence_nr), None)
        return then is not None and checksum_of(tensor) not in {then, None}

    def _look(self, tensor: torch.Tensor, end: int, *, is_torchs: bool) -> None:
        if tensor.device.type == "cpu" and (self._is_shared(tensor) or (not is_torchs and is_from_numpy(tensor))):
            self._remember(tensor, end)
        elif not is_torchs:
            self._from_torch[id(tensor)] = HiddenRef(tensor)

    def _is_shared(self, tensor: torch.Tensor) -> bool:
        return bool(self._shared) and storage_key(tensor) in self._shared

    def _remember(self, tensor: torch.Tensor, end: int) -> None:
        view, checksum = _view_of(tensor), checksum_of(tensor)
        if view is None:
            return
        if tensor.nbytes > MAX_BYTES and view[0] not in self._too_large:
            self._too_large.add(view[0])
            self._errors.pass_over(_WHAT, f"larger than {format_bytes(MAX_BYTES)}")
        elif checksum is not None and len(self._contents) >= MAX_VIEWS:
            self._errors.pass_over(_WHAT, f"after the first {MAX_VIEWS:,}")
        elif checksum is not None:
            self._contents.setdefault(view, []).append(_Content(end, checksum))
            self._known.add(view[0])


def is_from_numpy(tensor: torch.Tensor) -> bool:
    """Return whether the memory of data belongs to something else than torch."""
    if tensor.requires_grad or isinstance(tensor, nn.Parameter) or tensor.layout is not torch.strided:
        return False
    return not is_transforming() and not computes_by_itself(tensor) and not ops.untyped_storage(tensor).resizable()


def _dimensions(tensor: torch.Tensor) -> list[int]:
    """Order the dimensions by their strides, so that a transposed view is the same."""
    return sorted(range(ops.dim(tensor)), key=lambda place: (-ops.stride(tensor, place), -ops.size(tensor, place)))


def _view_of(tensor: torch.Tensor) -> _View | None:
    key = storage_key(tensor)
    if key is None or tensor.layout is not torch.strided or tensor.dtype.is_complex:
        return None
    shape = tuple(
        (ops.stride(tensor, place), ops.size(tensor, place))
        for place in _dimensions(tensor)
        if ops.size(tensor, place) > 1
    )
    return key, ops.storage_offset(tensor), shape


def checksum_of(tensor: torch.Tensor) -> int | None:
    """Return a checksum of the values of a tensor on the CPU; None if they are too many or cannot be read."""
    if computes_by_itself(tensor) or tensor.device.type != "cpu" or tensor.nbytes > MAX_BYTES:
        return None
    with Unobserved():
        try:
            plain = ops.contiguous(ops.permute(ops.detach(tensor), _dimensions(tensor)))
            end = ops.storage_offset(plain) * ops.element_size(plain) + plain.nbytes
            if not plain.nbytes or ops.untyped_storage(plain).nbytes() < end:  # its memory was released
                return None
            return zlib.crc32((ctypes.c_char * plain.nbytes).from_address(ops.data_ptr(plain)))
        except (RuntimeError, NotImplementedError):
            return None
