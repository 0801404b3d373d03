"""Checksums of memory, to detect that a value was restored."""

import ctypes
import zlib

import torch

from gradinspect.torch_api.graph_capture import is_capturing
from gradinspect.torch_api.modes import computes_by_itself, unobserved

MAX_BYTES = 8 << 20  # of a storage; larger ones count as changed


def checksum(tensor: torch.Tensor) -> int | None:
    """Return a checksum of the whole storage of a tensor; None if it is large or cannot be read."""
    if computes_by_itself(tensor) or (not tensor.is_cpu and is_capturing()):
        return None
    with unobserved():
        try:
            storage = tensor.untyped_storage()
            if storage.nbytes() > MAX_BYTES:
                return None
            copy = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage).to("cpu", copy=True)
            return zlib.crc32(ctypes.string_at(copy.data_ptr(), copy.numel()))
        except (RuntimeError, NotImplementedError):
            return None
