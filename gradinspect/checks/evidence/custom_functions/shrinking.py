"""Smaller double-precision copies of a Function's arguments, away from kinks, for finite differences."""

from collections.abc import Sequence
from typing import Any

import torch

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
    return sum(value.numel() for value in args if isinstance(value, torch.Tensor) and value.requires_grad)


def in_double_precision(args: Sequence[Any]) -> list[Any]:
    """Copy tensors, and move each element a little away from kinks, where the derivative is ambiguous."""
    generator = torch.Generator().manual_seed(0)
    return [_double(value, generator) if isinstance(value, torch.Tensor) else value for value in args]


def _cut(tensor: torch.Tensor, smaller: dict[int, int]) -> torch.Tensor:
    cut = tensor.detach()
    for place, size in enumerate(tensor.shape):
        cut = cut.narrow(place, 0, smaller.get(size, size))
    if not (cut.is_floating_point() or cut.is_complex() or cut.dtype is torch.bool):
        cut = cut.clamp(max=2)  # keep indices within the shortened dimensions
    return cut.clone().requires_grad_(tensor.requires_grad)


def _double(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor.detach().clone()
    wide = tensor.detach().to(torch.complex128 if tensor.is_complex() else torch.float64)
    noise = 1e-3 * (0.5 + 0.5 * torch.rand(wide.shape, generator=generator, dtype=torch.float64)).to(wide.device)
    moved = torch.where(wide == 0, noise.to(wide.dtype), wide * (1 + noise))
    return moved.requires_grad_(tensor.requires_grad)
