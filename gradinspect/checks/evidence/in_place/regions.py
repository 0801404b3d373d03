"""Which elements of its storage a tensor covers, and whether two tensors overlap."""

from typing import NamedTuple

import torch

MAX_ELEMENTS = 50_000_000  # of a storage, up to which two interleaved tensors are compared element by element


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


def region_of(tensor: torch.Tensor) -> Region:
    """Return the region of a tensor."""
    return Region(tensor.element_size(), tensor.storage_offset(), tuple(tensor.shape), tensor.stride())


def overlaps(one: Region, other: Region) -> bool:
    """Return whether two tensors of one storage share an element; interleaved rows, for example, do not."""
    start = max(one.offset * one.item_size, other.offset * other.item_size)
    end = min(one.end * one.item_size, other.end * other.item_size)
    if start >= end:
        return False
    num_elements = max(one.end, other.end)
    if one.item_size != other.item_size or num_elements > MAX_ELEMENTS:
        return True
    first = min(one.offset, other.offset)
    marks = torch.zeros(num_elements - first, dtype=torch.bool)
    marks.as_strided(one.shape, one.strides, one.offset - first).fill_(True)  # returns a tensor
    return bool(marks.as_strided(other.shape, other.strides, other.offset - first).any())
