"""Fingerprints of tensors, computed on their devices, and fetched together.

NOTE [Sums that have no order]
The hash of the bytes is a sum of integers, which is exact in any order, so that a device may add them as it likes.
For the digest each element is first mixed with its position; for the sketch it is not, so that a permutation has the
same sketch.
"""

from itertools import islice
from math import hypot, sqrt
from operator import mul
from typing import Any

import torch
from msgspec import Struct

from gradinspect.graph import Fingerprint
from gradinspect.recording.values.magnitudes import bits_of, scaled_by_largest, why_unread, wide_dtype
from gradinspect.torch_api.modes import unobserved
from gradinspect.torch_api.patching.originals import ops

STEP = 1 << 20  # elements at a time, so that little memory is used
NUM_SIGNS = 8
_ODD = (-7046029254386353131, -4417276706812531889, 1609587929392839161)


class Pending(Struct, gc=False):
    """The fingerprint of one tensor, still on its device."""

    num_elements: int
    floats: torch.Tensor  # of each part: scale, squares, sum, low, high, and the projections
    counts: torch.Tensor  # not finite, digest, sketch


def measure(tensor: torch.Tensor) -> Pending | None:
    """Take the fingerprint of a tensor; None if it cannot be read, or has no elements, or if we would be traced."""
    if torch.jit.is_tracing() or why_unread(tensor) is not None:
        return None
    try:
        with unobserved():
            return _measured(_elements(tensor))
    except (RuntimeError, NotImplementedError, TypeError, KeyError):
        return None


def _elements(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements in their logical order, real numbers."""
    values = ops.detach(tensor)
    if values.layout is not torch.strided:
        values = ops.values(ops.coalesce(values)) if values.layout is torch.sparse_coo else ops.values(values)
    values = ops.view_as_real(ops.resolve_conj(values)) if ops.is_complex(values) else values
    return ops.reshape(ops.contiguous(ops.resolve_neg(values)), (-1,))


def _measured(values: torch.Tensor) -> Pending | None:
    number = ops.numel(values)
    if not number:
        return None
    pieces = zip(ops.split(values, STEP), ops.split(bits_of(values), STEP), range(0, number, STEP), strict=True)
    parts = [_part(*piece) for piece in pieces]
    floats, counts = ops.stack([part[0] for part in parts]), ops.stack([part[1] for part in parts])
    return Pending(number, floats, ops.sum(counts, 0))


def _part(values: torch.Tensor, bits: torch.Tensor, start: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Measure some elements. NOTE [Sums that have no order]."""
    numbers, wide = ops.to(values, wide_dtype(values)), ops.mul(ops.long(bits), _ODD[0])
    is_finite = ops.isfinite(numbers)
    numbers = ops.where(is_finite, numbers, 0.0)  # a mask of -inf must not hide what is beside it
    places = _mixed(ops.mul(ops.arange(start + 1, start + 1 + ops.numel(values), device=values.device), _ODD[1]))
    low, high = ops.aminmax(numbers)
    scale = ops.ones_like(low)
    if numbers.dtype is values.dtype or numbers.dtype is torch.float32:  # its squares may leave the range
        scale, numbers = scaled_by_largest(numbers, low, high, numbers.dtype)
    projections = [
        ops.sum(ops.mul(numbers, _signs(ops.bitwise_right_shift(places, shift)))) for shift in range(20, 20 + NUM_SIGNS)
    ]
    floats = ops.stack([scale, ops.sum(ops.square(numbers)), ops.sum(numbers), low, high, *projections])
    return floats, ops.stack(
        [ops.sum(ops.logical_not(is_finite)), ops.sum(_mixed(ops.add(wide, places))), ops.sum(_mixed(wide))]
    )


def _mixed(numbers: torch.Tensor) -> torch.Tensor:
    """Spread each bit over all bits."""
    numbers = ops.mul(ops.bitwise_xor(numbers, ops.bitwise_right_shift(numbers, 29)), _ODD[2])
    return ops.bitwise_xor(numbers, ops.bitwise_right_shift(numbers, 32))


def _signs(numbers: torch.Tensor) -> torch.Tensor:
    """Return 1 for even numbers, -1 for odd ones."""
    return ops.rsub(ops.mul(ops.bitwise_and(numbers, 1), 2), 1)


def fetch(pending: list[Pending]) -> list[Fingerprint]:
    """Copy fingerprints to the CPU, with two transfers per device."""
    found: dict[int, Fingerprint] = {}
    groups: dict[Any, list[int]] = {}
    for place, one in enumerate(pending):
        groups.setdefault(one.floats.device, []).append(place)
    with unobserved():
        for places in groups.values():
            rows = iter(ops.tolist(ops.cat([pending[place].floats for place in places])))
            counts = ops.tolist(ops.stack([pending[place].counts for place in places]))
            for place, integers in zip(places, counts, strict=True):
                one = pending[place]
                found[place] = _fingerprint(one.num_elements, list(islice(rows, ops.size(one.floats, 0))), integers)
    return [found[place] for place in range(len(pending))]


def _fingerprint(number: int, parts: list[list[float]], counts: list[int]) -> Fingerprint:
    scales, squares, totals, lows, highs, *projections = zip(*parts, strict=True)
    return Fingerprint(
        norm=hypot(*[scale * sqrt(square) for scale, square in zip(scales, squares, strict=True)]),
        mean=sum(scale * (total / number) for scale, total in zip(scales, totals, strict=True)),
        low=min(lows),
        high=max(highs),
        num_nonfinite=counts[0],
        digest=f"{counts[1] & (1 << 64) - 1:016x}",
        sketch=f"{counts[2] & (1 << 64) - 1:016x}",
        projections=tuple(sum(map(mul, scales, sums)) for sums in projections),
    )
