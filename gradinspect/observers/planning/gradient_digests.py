"""Digests of a program's gradients, to compare two runs to the last bit without keeping either."""

import ctypes
import hashlib
from collections.abc import Iterable

import torch

from gradinspect.analyses.planning.trial import GradientDigest


def digests_of(leaves: Iterable[torch.Tensor]) -> tuple[GradientDigest, ...]:
    """Digest the gradients of some leaves, in their order."""
    with torch.no_grad():
        return tuple(_digest(leaf.grad.detach()) for leaf in leaves if leaf.grad is not None)


def _digest(gradient: torch.Tensor) -> GradientDigest:
    dense = (gradient.to_dense() if gradient.layout is not torch.strided else gradient).cpu().contiguous()
    data = ctypes.string_at(dense.data_ptr(), dense.nbytes)
    norm = float(torch.linalg.vector_norm(dense.to(torch.float64 if not dense.is_complex() else torch.complex128)))
    return GradientDigest(digest=hashlib.sha256(data).hexdigest(), norm=norm)
