"""Norms of any kind of tensor: halves, complex numbers, sparse and permuted layouts."""

from collections.abc import Sequence

import torch

from gradinspect.recording.outputs import OutputTensor
from gradinspect.torch_api.modes import computes_by_itself, unobserved
from gradinspect.torch_api.tensors import is_released


def norm_of(tensor: torch.Tensor) -> float | None:
    """Return the norm of a tensor, or None if it cannot be computed."""
    if computes_by_itself(tensor) or is_released(tensor):
        return None
    try:
        with unobserved():
            return float(torch.linalg.vector_norm(plain_values(tensor)))
    except (RuntimeError, NotImplementedError, TypeError):
        return None


def plain_values(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements as real floats in memory order; reductions in another order are ten times slower."""
    values = tensor.detach()
    if values.layout is not torch.strided:
        values = values.coalesce().values() if values.layout is torch.sparse_coo else values.values()
    values = values.abs() if values.is_complex() else values
    if values.dtype not in (torch.float32, torch.float64):
        values = values.float()
    if not values.is_contiguous():
        strides = values.stride()
        values = values.permute(sorted(range(values.dim()), key=lambda dim: -strides[dim]))
    return values


def scalar_value(outputs: Sequence[OutputTensor]) -> float | None:
    """Return the value of a loss; None unless it is one real scalar that can be read."""
    value = outputs[0].value if len(outputs) == 1 else None
    if not isinstance(value, torch.Tensor) or computes_by_itself(value):
        return None
    with unobserved():
        if value.numel() != 1 or value.is_complex():
            return None
        try:
            return float(value.detach())
        except RuntimeError:  # inside a torch.func transform a tensor has no readable value
            return None
