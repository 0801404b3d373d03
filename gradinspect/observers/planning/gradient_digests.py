"""Digests of a program's gradients, to compare the gradients of two runs bit by bit without keeping them.

NOTE [How far apart gradients are]
The values of a gradient are added up in 256 sums, each value with a random sign, from the same seed in each run.
The squares of the sums add up to about the square of the norm; the sums of a difference are the differences of the
sums. So the norm of the difference of two gradients is known to about a tenth, though neither is kept.
"""

import ctypes
import hashlib
from collections.abc import Iterable

import torch

from gradinspect.analyses.planning.trial import Digest
from gradinspect.recording.values.magnitudes import dense_of
from gradinspect.torch_api.patching.originals import ops, without_grad

_NUM_SUMS = 256
_PART = 2**20  # values at a time


def digests_of(leaves: Iterable[torch.Tensor]) -> tuple[Digest, ...]:
    """Digest the gradients of some leaves, in their order."""
    with without_grad():
        return tuple(_digest(ops.detach(leaf.grad)) for leaf in leaves if leaf.grad is not None)


def digests_of_values(leaves: Iterable[torch.Tensor]) -> tuple[Digest, ...]:
    """Digest some leaves themselves, in their order."""
    with without_grad():
        return tuple(_digest(ops.detach(leaf)) for leaf in leaves)


def _digest(gradient: torch.Tensor) -> Digest:
    dense = ops.contiguous(ops.cpu(dense_of(gradient)))
    data = ctypes.string_at(ops.data_ptr(dense), dense.nbytes)
    wide = ops.to(dense, torch.complex128 if ops.is_complex(dense) else torch.float64)
    norm = float(ops.item(ops.vector_norm(wide)))
    return Digest(digest=hashlib.sha256(data).hexdigest(), norm=norm, sums=_sums(dense))


def _sums(dense: torch.Tensor) -> tuple[float, ...]:
    """Add up the values with random signs. NOTE [How far apart gradients are]."""
    values = ops.flatten(ops.view_as_real(dense) if ops.is_complex(dense) else dense)
    generator = torch.Generator().manual_seed(0)
    sums = ops.zeros(_NUM_SUMS, dtype=torch.float64)
    for part in ops.split(values, _PART):
        signs = ops.sub(ops.mul(ops.randint(2, part.shape, generator=generator, dtype=torch.int8), 2), 1)
        signed = ops.mul(ops.to(part, torch.float64), signs)
        padded = ops.constant_pad_nd(signed, (0, -ops.numel(signed) % _NUM_SUMS))
        ops.add_(sums, ops.sum(ops.view(padded, -1, _NUM_SUMS), 0))
    return tuple(ops.tolist(sums))
