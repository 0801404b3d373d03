"""Norms of any kind of tensor: halves, complex numbers, sparse and permuted layouts."""

import torch

from gradinspect.torch_api.modes import Unobserved, computes_by_itself


def norm_of(tensor: torch.Tensor) -> float | None:
    """Return the norm of a tensor, or None if it cannot be computed."""
    if computes_by_itself(tensor):
        return None
    try:
        with Unobserved():
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
