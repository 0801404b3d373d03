"""Norms, means, extremes and counts of the elements of any tensor: the one place that computes them.

NOTE [Very small and very large numbers]
The square of a float32 below 1e-23 is 0, and above 1e19 infinite; so a norm taken in the dtype itself is 0 or infinite
although no element is. On the CPU the largest element says whether that can be: nearly always it cannot, and nothing is
computed twice. On a device nothing is read in between, so norms and sums are taken in float64 at once; where there is
none, as on MPS, and of what is float64 itself, the elements are divided by the largest one first. Their rows of figures
are combined here, in Python's float64.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from math import hypot, inf, isfinite, isinf, isnan, nan
from typing import NamedTuple

import torch
from msgspec import Struct

from gradinspect.errors import text_of
from gradinspect.torch_api.devices.graph_capture import INSIDE, is_capturing
from gradinspect.torch_api.modes import computes_by_itself, unobserved
from gradinspect.torch_api.patching.originals import ops
from gradinspect.torch_api.tensors import can_read_values, is_released, plain_tensors_only

PIECE = 1 << 18  # elements of a device's tensor at a time
LEAST_PIECE = 1 << 14  # 64 KiB of float32, also beside a tiny model: smaller ones would be slow
PIECES_OF_MODEL = 200  # a piece is needed twice at once at most: 1% of the weights
SAFE = {torch.float32: (1e-10, 1e14), torch.float64: (1e-140, 1e140)}  # largest elements, of any number of elements
_REAL = (torch.float32, torch.float64, torch.float16, torch.bfloat16)  # what reductions take everywhere
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_MAX_REASON = 80
_OPERATOR = re.compile(r"'(aten::\w+)")
UNREADABLE = (RuntimeError, NotImplementedError, TypeError, KeyError, IndexError)


class Magnitudes(NamedTuple):
    """The figures of one tensor, or of the absolute values of complex elements; if one is not finite, four are not.

    The norm of finite elements is 0 only if all are 0, and infinite only if float64 cannot hold it.
    """

    norm: float
    low: float
    high: float
    mean: float
    num_nonzero: int
    num_nonfinite: int

    @property
    def largest(self) -> float:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))


NO_ELEMENTS = Magnitudes(0.0, 0.0, 0.0, 0.0, 0, 0)


class PendingFigures(Struct, gc=False):
    """Figures of one tensor, still on its device: one row for each piece of it."""

    num_elements: int
    rows: list[torch.Tensor]


def why_unread(tensor: torch.Tensor) -> str | None:
    """Say why the elements of a tensor cannot be read; None if they can, as far as is known."""
    if not can_read_values():
        return "inside a torch.func transform"
    if computes_by_itself(tensor):
        return f"{type(tensor).__name__} implements the operators itself"
    if not tensor.is_cpu and is_capturing():  # NOTE [Captured kernels]
        return INSIDE
    if tensor.is_meta:
        return "on the meta device, which has no values"
    return "its memory is released" if is_released(tensor) else None


def why_failed(error: Exception, tensor: torch.Tensor | None) -> str:
    """Say in a few words why a tensor's figures could not be computed."""
    text = text_of(error)
    operator = _OPERATOR.search(text)
    if operator is not None and tensor is not None:
        return f"'{operator[1]}' is not implemented on {tensor.device.type}"
    line = text.partition("\n")[0].strip() or type(error).__name__
    return line if len(line) <= _MAX_REASON else f"{line[: _MAX_REASON - 3]}..."


def elements_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements that a tensor stores, in memory order; reductions in another order are ten times slower."""
    values = ops.detach(tensor)
    if values.layout is not torch.strided:
        values = ops.values(ops.coalesce(values)) if values.layout is torch.sparse_coo else ops.values(values)
    if not ops.is_contiguous(values):
        strides = ops.stride(values)
        values = ops.permute(values, sorted(range(ops.dim(values)), key=lambda dim: -strides[dim]))
    return values


def dense_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor with all its elements, also the zeros that a sparse one does not store."""
    return tensor if tensor.layout is torch.strided else ops.to_dense(tensor)


def bits_of(values: torch.Tensor) -> torch.Tensor:
    """Return a view of real numbers as signed integers of the same size; digests in capture files are made of these."""
    return ops.view(values, _BITS[ops.element_size(values)])


def magnitudes_of(tensor: torch.Tensor) -> Magnitudes:
    """Measure a tensor now, and wait for its device.

    Raises:
        RuntimeError: Or another of `UNREADABLE`: it has no readable elements, or its device lacks an operator.
    """
    if not tensor.is_cpu:
        pending = pending_magnitudes(tensor)
        return combined(pending, fetched([pending])[0])
    values = elements = elements_of(tensor)
    if not ops.numel(values):
        return NO_ELEMENTS
    if values.dtype not in SAFE:
        if ops.is_complex(values):
            values = ops.abs(ops.to(values, torch.complex64) if values.dtype is torch.complex32 else values)
        values = values if values.dtype in SAFE else ops.float(values)
    norm = ops.item(ops.vector_norm(values))
    least, most = ops.aminmax(values)
    low, high = ops.item(least), ops.item(most)
    if not is_safe(values.dtype, low, high) or (isinf(high) and ops.is_complex(elements)):
        return _exactly(ops.numel(tensor), elements)
    num_nonfinite = 0 if isfinite(norm) else int(ops.item(ops.sum(ops.logical_not_(ops.isfinite(values)))))
    mean, num_nonzero = ops.item(ops.sum(values)) / ops.numel(tensor), ops.item(ops.count_nonzero(values))
    return Magnitudes(norm, low, high, mean, num_nonzero, num_nonfinite)


def is_safe(dtype: torch.dtype, low: float, high: float) -> bool:
    """Return whether reductions in this dtype can be trusted. NOTE [Very small and very large numbers]."""
    least, most = SAFE[dtype]
    largest = max(-low, high)
    return least <= largest <= most or not 0 < largest < inf


def norm_of(tensor: torch.Tensor) -> float:
    """Return the norm of a tensor, computed now.

    Raises:
        RuntimeError: As `magnitudes_of`.
    """
    if tensor.is_cpu and tensor.dtype in SAFE:
        norm: float = ops.item(ops.vector_norm(elements_of(tensor)))
        least, most = SAFE[tensor.dtype]
        if least <= norm <= most:
            return norm
    return magnitudes_of(tensor).norm


def piece_beside(weights: Iterable[torch.Tensor]) -> int:
    """Choose how many elements are measured at a time, so that it takes little memory beside the weights."""
    with plain_tensors_only():
        num_elements: int = sum(ops.numel(weight) for weight in weights if not weight.is_cpu)
    return min(PIECE, max(LEAST_PIECE, num_elements // PIECES_OF_MODEL))


def pending_magnitudes(tensor: torch.Tensor, piece: int = PIECE) -> PendingFigures:
    """Measure a tensor without waiting for its device, `piece` elements at a time.

    Raises:
        RuntimeError: As `magnitudes_of`.
    """
    return _pending(tensor, _row, piece)


def pending_norm(tensor: torch.Tensor, piece: int = PIECE) -> PendingFigures:
    """Take the norm of a tensor without waiting for its device, `piece` elements at a time.

    Raises:
        RuntimeError: As `magnitudes_of`.
    """
    return _pending(tensor, norm_row, piece)


def _pending(
    tensor: torch.Tensor, row_of: Callable[[torch.Tensor, torch.dtype], torch.Tensor], piece: int
) -> PendingFigures:
    elements = elements_of(tensor)
    wide = wide_dtype(elements)
    return PendingFigures(ops.numel(tensor), [row_of(part, wide) for part in pieces_of(elements, piece)])


def pending_difference(tensor: torch.Tensor, before: torch.Tensor, size: int) -> PendingFigures:
    """Take the norm of a tensor minus an earlier copy on the CPU, `size` elements at a time.

    Raises:
        RuntimeError: As `magnitudes_of`.
    """
    if tensor.shape != before.shape:
        raise RuntimeError("its shape has changed")
    wide = wide_dtype(tensor)
    if ops.stride(tensor) != ops.stride(before):
        return PendingFigures(ops.numel(tensor), [norm_row(_difference(ops.detach(tensor), before), wide)])
    parts = zip(pieces_of(elements_of(tensor), size), pieces_of(elements_of(before), size), strict=True)
    return PendingFigures(ops.numel(tensor), [norm_row(_difference(part, earlier), wide) for part, earlier in parts])


def _difference(part: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Subtract in float32 at least: the difference of two float16 numbers may not be one."""
    is_narrow = not ops.is_complex(part) and part.dtype not in SAFE
    earlier = ops.to(before, part.device)
    return ops.sub(ops.float(part), ops.float(earlier)) if is_narrow else ops.sub(part, earlier)


def direction_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements of a dense tensor in one row of norm 1; zeros stay what they are.

    Raises:
        RuntimeError: As `magnitudes_of`.
    """
    values = ops.flatten(ops.detach(tensor))
    values = values if values.dtype in SAFE else ops.float(values)
    if not ops.numel(values):
        return values
    low, high = ops.aminmax(values)
    _, scaled = scaled_by_largest(values, low, high, values.dtype)
    norm = ops.vector_norm(scaled)
    return ops.div_(scaled, ops.where(ops.gt(norm, 0), norm, 1.0))


def pieces_of(elements: torch.Tensor, size: int = PIECE) -> Iterator[torch.Tensor]:
    """Yield views of at most `size` elements, so that measuring them takes little memory."""
    number = ops.numel(elements)
    if number <= size or not ops.is_contiguous(elements):
        if number:
            yield elements
        return
    flat = ops.view(elements, -1)
    for start in range(0, number, size):
        yield ops.narrow(flat, 0, start, min(size, number - start))


def fetched(several: Sequence[PendingFigures]) -> list[list[list[float]]]:
    """Copy rows of figures to the CPU, with one transfer per device.

    Returns:
        The rows of each.
    """
    devices: dict[torch.device, list[torch.Tensor]] = {}
    for pending in several:
        for row in pending.rows:
            devices.setdefault(row.device, []).append(row)
    figures = {device: iter(ops.tolist(ops.cat(rows))) for device, rows in devices.items()}
    return [[[next(figures[row.device]) for _ in range(ops.numel(row))] for row in pending.rows] for pending in several]


def combined(pending: PendingFigures, rows: Sequence[Sequence[float]]) -> Magnitudes:
    """Combine the rows of the pieces of one tensor."""
    if not rows:
        return NO_ELEMENTS
    scales, _, lows, highs, totals, nonzero, nonfinite = zip(*rows, strict=True)
    is_nan = any(map(isnan, lows))
    number = pending.num_elements
    return Magnitudes(
        combined_norm(rows),
        nan if is_nan else min(lows),
        nan if is_nan else max(highs),
        sum(scale * (total / number) for scale, total in zip(scales, totals, strict=True)),
        round(sum(nonzero)),
        round(sum(nonfinite)),
    )


def combined_norm(rows: Sequence[Sequence[float]]) -> float:
    """Return the norm of a tensor by those of its pieces."""
    norms = [row[0] * row[1] for row in rows]
    return nan if any(map(isnan, norms)) else hypot(*norms)


def _exactly(number: int, elements: torch.Tensor) -> Magnitudes:
    """Measure a tensor of the CPU whose elements are very small or very large."""
    pending = PendingFigures(number, [_row(part, torch.float64) for part in pieces_of(elements)])
    return combined(pending, [ops.tolist(row) for row in pending.rows])


def wide_dtype(values: torch.Tensor) -> torch.dtype:
    """Return the widest floating dtype of a tensor's device."""
    return torch.float64 if values.is_cpu or has_float64(values.device) else torch.float32


@cache  # a fact about the device, of which there are few
def has_float64(device: torch.device) -> bool:
    """Return whether a device, on which there are tensors, has float64."""
    try:
        with unobserved():
            ops.empty(1, device=device, dtype=torch.float64)
    except (RuntimeError, NotImplementedError, TypeError):
        return False
    return True


def _row(part: torch.Tensor, wide: torch.dtype) -> torch.Tensor:
    """Return scale, norm / scale, minimum, maximum, sum / scale, and the numbers of nonzero and nonfinite elements."""
    values = _real(part, wide)
    low, high = ops.aminmax(values)
    scale, scaled = scaled_by_largest(values, low, high, wide)
    elements = part if ops.is_complex(part) else values
    figures = (
        scale,
        ops.vector_norm(scaled, dtype=wide),
        low,
        high,
        ops.sum(scaled, dtype=wide),
        ops.count_nonzero(values),
        ops.count_nonzero(ops.sub(elements, elements)),  # of a finite one 0, else NaN: half the room `isfinite` takes
    )
    return ops.stack([ops.to(figure, wide) for figure in figures])


def norm_row(part: torch.Tensor, wide: torch.dtype) -> torch.Tensor:
    """Return scale and norm / scale only, which needs less memory."""
    values = _real(part, wide)
    low, high = ops.aminmax(values)
    scale, scaled = scaled_by_largest(values, low, high, wide)
    return ops.stack([ops.to(scale, wide), ops.vector_norm(scaled, dtype=wide)])


def extremes_row(values: torch.Tensor) -> torch.Tensor:
    """Return the least and the largest element, of real and imaginary parts; NaN if any is, and nothing is copied.

    Raises:
        RuntimeError: As `magnitudes_of`.
    """
    parts = ops.view_as_real(ops.resolve_conj(values)) if ops.is_complex(values) else values
    return ops.to(ops.stack(tuple(ops.aminmax(parts))), wide_dtype(values))


def _real(part: torch.Tensor, wide: torch.dtype) -> torch.Tensor:
    if ops.is_complex(part):
        return ops.abs(ops.to(part, torch.complex128 if wide is torch.float64 else torch.complex64))
    return part if part.dtype in _REAL else ops.to(part, wide)


def scaled_by_largest(
    values: torch.Tensor, low: torch.Tensor, high: torch.Tensor, wide: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Divide by the largest element, unless `wide` holds any square. NOTE [Very small and very large numbers]."""
    if wide is torch.float64 and values.dtype is not torch.float64:
        return ops.ones_like(low, dtype=wide), values
    largest = ops.to(ops.maximum(ops.abs(low), ops.abs(high)), wide)
    scale = ops.where(ops.logical_and(ops.isfinite(largest), ops.gt(largest, 0)), largest, 1.0)
    return scale, ops.div(ops.to(values, wide), scale)
