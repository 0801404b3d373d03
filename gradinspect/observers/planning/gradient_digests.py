"""Digests of a program's gradients, to compare two runs to the last bit without keeping either.

NOTE [How far gradients are apart]
The values of a gradient are added up in 256 sums, each value with a sign that is drawn, by the same seed in each run.
The squares of the sums add up to about the square of the norm; the sums of a difference are the differences of the
sums. So the norm of the difference of two gradients is known to about a tenth, though neither is kept.
"""

import ctypes
import hashlib
from collections.abc import Iterable

import torch
from torch import nn

from gradinspect.analyses.planning.trial import GradientDigest

_NUM_SUMS = 256
_PART = 2**20  # values at a time


def digests_of(leaves: Iterable[torch.Tensor]) -> tuple[GradientDigest, ...]:
    """Digest the gradients of some leaves, in their order."""
    with torch.no_grad():
        return tuple(_digest(leaf.grad.detach()) for leaf in leaves if leaf.grad is not None)


def _digest(gradient: torch.Tensor) -> GradientDigest:
    dense = (gradient.to_dense() if gradient.layout is not torch.strided else gradient).cpu().contiguous()
    data = ctypes.string_at(dense.data_ptr(), dense.nbytes)
    norm = float(torch.linalg.vector_norm(dense.to(torch.float64 if not dense.is_complex() else torch.complex128)))
    return GradientDigest(digest=hashlib.sha256(data).hexdigest(), norm=norm, sums=_sums(dense))


def _sums(dense: torch.Tensor) -> tuple[float, ...]:
    """Add up the values with drawn signs. NOTE [How far gradients are apart]."""
    values = (torch.view_as_real(dense) if dense.is_complex() else dense).flatten()
    generator = torch.Generator().manual_seed(0)
    sums = torch.zeros(_NUM_SUMS, dtype=torch.float64)
    for part in values.split(_PART):
        signs = torch.randint(2, part.shape, generator=generator, dtype=torch.int8) * 2 - 1
        signed = part.to(torch.float64) * signs
        sums += nn.functional.pad(signed, (0, -len(signed) % _NUM_SUMS)).view(-1, _NUM_SUMS).sum(0)
    return tuple(sums.tolist())
