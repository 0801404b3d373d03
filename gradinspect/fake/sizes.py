"""The largest result of an operator whose size depends on values, which fake tensors do not have.

NOTE [Sizes that depend on values]
`x[mask]`, `mask.nonzero()` and `x.unique()` select some of what they are given: all of it at most. Fake tensors say
that the size is not known; `fit` then goes on with the largest one, so that what it reports is a bound, and says which
lines it did so for. What may be of any size, such as `repeat_interleave` with repeats in a tensor, or `bincount`, has
none.
"""

from collections.abc import Callable
from math import prod
from typing import Any, TypeAlias

import torch

from gradinspect.torch_api.operators import unique_elements

_ATEN = torch.ops.aten
_Bound: TypeAlias = Callable[..., Any]


def largest_result(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of an operator that selects all that it can; None if there is no largest one.

    Args:
        func: The operator; fake tensors have not said how large its result is.
        args: Its arguments, in its own order.
        kwargs: Its keyword arguments.
    """
    bound = _BOUNDS.get(func)
    return None if bound is None else bound(*args, **kwargs)


def _nonzero(tensor: torch.Tensor) -> torch.Tensor:
    """Make `i64[elements, dimensions]`, which is stored by columns, as that of the CPU's kernel."""
    return torch.empty_strided(
        (tensor.numel(), tensor.dim()), (1, max(tensor.numel(), 1)), dtype=torch.int64, device=tensor.device
    )


def _index(tensor: torch.Tensor, indices: list[torch.Tensor | None]) -> Any:
    """Index with the positions that a mask may select, one index for each of its dimensions."""
    positions: list[torch.Tensor | None] = []
    for index in indices:
        is_mask = index is not None and index.dtype in (torch.bool, torch.uint8)
        positions.extend(_nonzero(index).unbind(1) if index is not None and is_mask else (index,))
    return _ATEN.index.Tensor(tensor, positions)


def _masked_select(tensor: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return tensor.new_empty(prod(torch.broadcast_shapes(tensor.shape, mask.shape)))


def _unique(
    tensor: torch.Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False  # noqa: A002  # as torch names it
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    del sorted
    return _unique_consecutive(tensor, return_inverse, return_counts)


def _unique_dim(
    tensor: torch.Tensor, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False  # noqa: A002  # as torch names it
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    del sorted
    return _unique_consecutive(tensor, return_inverse, return_counts, dim)


def _unique_consecutive(
    tensor: torch.Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[torch.Tensor, ...]:
    """Let every element, or every slice along a dimension, be another one."""
    number = tensor.numel() if dim is None else tensor.shape[dim]
    places: tuple[int, ...] = tuple(tensor.shape) if dim is None else (number,)
    return (
        tensor.new_empty(number if dim is None else tensor.shape),
        tensor.new_empty(places if return_inverse else 0, dtype=torch.int64),
        tensor.new_empty(number if return_counts else 0, dtype=torch.int64),
    )


def _least_squares(
    tensor: torch.Tensor, right: torch.Tensor, _cutoff: float | None = None, *, driver: str | None = None
) -> tuple[torch.Tensor, ...]:
    """Let every matrix have full rank, for only then there are residuals.

    Source: aten/src/ATen/native/BatchLinearAlgebra.cpp, torch 2.13.
    """
    *batch, rows, columns = tensor.shape
    is_vector = right.dim() == tensor.dim() - 1 and right.shape == tensor.shape[:-1]
    width = [] if is_vector else [right.shape[-1]]
    solution = tensor.new_empty([*batch, *width, max(rows, columns)])[..., :columns]  # where LAPACK wrote it
    has_residuals, ranks, values = rows > columns and driver != "gelsy", driver != "gels", driver in ("gelsd", "gelss")
    return (
        solution if is_vector else solution.mT,
        tensor.new_empty([*batch, 1 if is_vector else width[0]] if has_residuals else 0),
        tensor.new_empty(batch if ranks else 0, dtype=torch.int64),
        tensor.new_empty([*batch, min(rows, columns)] if values else 0, dtype=tensor.real.dtype),
    )


_BOUNDS: dict[Any, _Bound] = {
    _ATEN.nonzero.default: _nonzero,
    _ATEN.index.Tensor: _index,
    _ATEN.masked_select.default: _masked_select,
    unique_elements: _unique,
    _ATEN.unique_dim.default: _unique_dim,
    _ATEN.unique_consecutive.default: _unique_consecutive,
    _ATEN.linalg_lstsq.default: _least_squares,
}
