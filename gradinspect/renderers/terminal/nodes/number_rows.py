"""The values of a small tensor as rows of numbers."""

import math
from collections.abc import Iterator, Sequence

from gradinspect.analyses.gradients.stepping import Number, TensorPreview
from gradinspect.units import format_dtype, format_share

MAX_LINES = 16


def value_lines(tensor: TensorPreview, num_cells: int, max_lines: int = MAX_LINES) -> list[str] | None:
    """Write all values as nested lists; None if they are unknown or do not fit."""
    if not tensor.values:
        return None
    words = [_number(value) for value in tensor.values]
    widest = max(map(len, words))
    lines = list(
        _block([word.rjust(widest) for word in words], [size for size in tensor.shape if isinstance(size, int)], "")
    )
    fits = len(lines) <= max_lines and all(len(line) <= num_cells for line in lines)
    return lines if fits else None


def _block(words: Sequence[str], shape: Sequence[int], indent: str) -> Iterator[str]:
    if not shape:
        yield f"{indent}{words[0].strip()}"
        return
    if len(shape) == 1:
        yield f"{indent}[{', '.join(words)}]"
        return
    size = math.prod(shape[1:])
    lines = [
        line
        for row in range(shape[0])
        for line in _block(words[row * size : (row + 1) * size], shape[1:], f"{indent} ")
    ]
    lines[0] = f"{indent}[{lines[0].removeprefix(indent + ' ')}"
    lines[-1] += "]"
    yield from lines


def _number(value: Number) -> str:
    if isinstance(value, bool | str):
        return str(value)
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def dtype_and_shape(tensor: TensorPreview) -> str:
    """Write dtype and shape: `f32[2, 3]`."""
    return f"{format_dtype(tensor.dtype)}[{', '.join(map(str, tensor.shape))}]"


def summarize_values(tensor: TensorPreview) -> str:
    """Summarize a tensor: its norm, its range, and its zeros and non-finite values."""
    parts = []
    if tensor.norm is not None and tensor.low is not None and tensor.high is not None and not tensor.num_nonfinite:
        parts.append(f"norm {tensor.norm:.3g}")
        if not tensor.is_zero and tensor.num_elements > 1:
            parts.append(f"{tensor.low:.3g} to {tensor.high:.3g}")
    if tensor.num_nonfinite:
        parts.append(f"{tensor.num_nonfinite:,} of {tensor.num_elements:,} not finite")
    elif tensor.is_zero:
        parts = ["all zero"]
    elif tensor.num_zeros and parts:
        parts.append(f"{format_share(tensor.num_zeros, tensor.num_elements)} zeros")
    return ", ".join(parts)
