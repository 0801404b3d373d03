"""Which elements of its storage a tensor covers, and whether two tensors overlap."""

from collections.abc import Iterator
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import torch

from gradinspect.torch_api.patching.originals import ops

MAX_ELEMENTS = 50_000_000  # of a storage, up to which two irregular regions are compared element by element


class Region(NamedTuple):
    """The elements of a storage that a tensor covers."""

    item_size: int
    offset: int  # in elements
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def end(self) -> int:
        """The element after the last one."""
        if 0 in self.shape:
            return self.offset
        return self.offset + 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))

    @property
    def num_bytes(self) -> int:
        """What its elements take, each as often as it is covered."""
        return self.item_size * prod(self.shape)

    @property
    def in_bytes(self) -> "Region":
        """The same region with bytes as elements."""
        size = self.item_size
        return Region(1, self.offset * size, (*self.shape, size), (*(stride * size for stride in self.strides), 1))


def region_of(tensor: torch.Tensor) -> Region:
    """Return the region of a tensor."""
    return Region(ops.element_size(tensor), ops.storage_offset(tensor), tuple(tensor.shape), ops.stride(tensor))


def part_of(region: Region, index: Any) -> Region | None:
    """Return the region that an index selects; None if that takes more than integers and slices."""
    items = index if isinstance(index, tuple) else (index,)
    num_indexed = sum(item is not None and item is not Ellipsis for item in items)
    offset, dim = region.offset, 0
    sizes: list[tuple[int, int]] = []  # with their strides
    for item in items:
        if item is None:
            continue
        if item is Ellipsis:
            num_whole = len(region.shape) - num_indexed
            sizes += zip(region.shape[dim : dim + num_whole], region.strides[dim : dim + num_whole], strict=True)
            dim += num_whole
            continue
        selected = _positions(item, region.shape[dim]) if dim < len(region.shape) else None
        if selected is None:
            return None
        stride = region.strides[dim]
        offset += selected.start * stride
        if isinstance(item, slice):
            sizes.append((len(selected), selected.step * stride))
        dim += 1
    sizes += zip(region.shape[dim:], region.strides[dim:], strict=True)
    return Region(region.item_size, offset, tuple(size for size, _ in sizes), tuple(stride for _, stride in sizes))


def overlaps(one: Region, other: Region) -> bool:
    """Return whether two tensors of one storage share an element; interleaved rows, for example, do not."""
    if one.item_size != other.item_size:
        one, other = one.in_bytes, other.in_bytes
    if max(one.offset, other.offset) >= min(one.end, other.end):
        return False
    in_grid = _overlaps_in_grid(one, other)
    if in_grid is not None:
        return in_grid
    first, num_elements = min(one.offset, other.offset), max(one.end, other.end)
    if num_elements > MAX_ELEMENTS:
        return True
    marks = ops.zeros(num_elements - first, dtype=torch.bool)
    ops.fill_(ops.as_strided(marks, one.shape, one.strides, one.offset - first), True)  # returns a tensor
    return bool(ops.item(ops.any(ops.as_strided(marks, other.shape, other.strides, other.offset - first))))


def _positions(item: Any, size: int) -> range | None:
    """Return what an integer or a slice selects; a tensor on a device is not read, and a boolean is no integer."""
    if isinstance(item, slice):
        limits = (item.start, item.stop, item.step)
        return range(size)[item] if all(limit is None or type(limit) is int for limit in limits) else None
    if isinstance(item, torch.Tensor):
        is_integer = not (ops.dim(item) or item.dtype in (torch.bool, torch.uint8) or item.dtype.is_floating_point)
        item = ops.item(item) if is_integer and item.is_cpu and type(item) is torch.Tensor else None
    if type(item) is not int or not -size <= item < size:
        return None
    place = item % size
    return range(place, place + 1)


def _overlaps_in_grid(one: Region, other: Region) -> bool | None:
    """Compare two boxes of one grid, dimension by dimension; None if their strides do not make one.

    An element has one place in the grid of the strides, as a number has one row of digits, so the boxes share an
    element if their intervals meet in each digit.
    """
    strides = sorted({stride for region in (one, other) for size, stride in _dimensions(region)}, reverse=True)
    if any(stride % smaller for stride, smaller in pairwise(strides)):
        return None
    boxes = [_box(region, strides) for region in (one, other)]
    if boxes[0] is None or boxes[1] is None:
        return None
    return all(max(a.start, b.start) < min(a.stop, b.stop) for a, b in zip(*boxes, strict=True))


def _dimensions(region: Region) -> Iterator[tuple[int, int]]:
    """Yield size and stride of the dimensions that reach more than one element."""
    sizes = zip(region.shape, region.strides, strict=True)
    return ((size, stride) for size, stride in sizes if size > 1 and stride)


def _box(region: Region, strides: list[int]) -> list[range] | None:
    """Return the interval of a region in each digit; None if it runs over into the next one."""
    extents = dict.fromkeys(strides, 1)
    for size, stride in _dimensions(region):
        if extents[stride] > 1:
            return None
        extents[stride] = size
    rest, box = region.offset, []
    for place, stride in enumerate(strides):
        digit, rest = divmod(rest, stride)
        stop = digit + extents[stride]
        if place and stop * stride > strides[place - 1]:
            return None
        box.append(range(digit, stop))
    return [*box, range(rest, rest + 1)]
