"""Smaller double-precision copies of a Function's arguments, away from kinks, for finite differences."""

from collections.abc import Sequence
from typing import Any

import torch

from gradinspect.torch_api.patching.originals import ops

SMALL = 4  # shorter dimensions are kept
WORKABLE = 20_000  # elements that may be checked without shrinking


def shrunk(args: Sequence[Any]) -> list[Any]:
    """Shorten long dimensions; equal lengths stay equal, and different ones stay different."""
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    lengths = sorted({size for tensor in tensors for size in tensor.shape if size > SMALL})
    smaller = {length: min(length, 3 + place) for place, length in enumerate(lengths)}
    return [_cut(value, smaller) if isinstance(value, torch.Tensor) else value for value in args]


def num_elements(args: Sequence[Any]) -> int:
    """Count the elements that require gradients."""
    return sum(ops.numel(value) for value in args if isinstance(value, torch.Tensor) and value.requires_grad)


def in_double_precision(args: Sequence[Any]) -> list[Any]:
    """Copy tensors, and move each element a little away from kinks, where the derivative is ambiguous."""
    generator = torch.Generator().manual_seed(0)
    return [_double(value, generator) if isinstance(value, torch.Tensor) else value for value in args]


def _cut(tensor: torch.Tensor, smaller: dict[int, int]) -> torch.Tensor:
    cut = ops.detach(tensor)
    for place, size in enumerate(tensor.shape):
        cut = ops.narrow(cut, place, 0, smaller.get(size, size))
    if not (ops.is_floating_point(cut) or ops.is_complex(cut) or cut.dtype is torch.bool):
        cut = ops.clamp(cut, max=2)  # keep indices within the shortened dimensions
    return ops.requires_grad_(ops.clone(cut), tensor.requires_grad)


def _double(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if not (ops.is_floating_point(tensor) or ops.is_complex(tensor)):
        return ops.clone(ops.detach(tensor))
    wide = ops.to(ops.detach(tensor), torch.complex128 if ops.is_complex(tensor) else torch.float64)
    drawn = ops.to(ops.rand(wide.shape, generator=generator, dtype=torch.float64), wide.device)
    noise = ops.mul(ops.add(ops.mul(drawn, 0.5), 0.5), 1e-3)
    moved = ops.where(ops.eq(wide, 0), ops.to(noise, wide.dtype), ops.mul(wide, ops.add(noise, 1)))
    return ops.requires_grad_(moved, tensor.requires_grad)
