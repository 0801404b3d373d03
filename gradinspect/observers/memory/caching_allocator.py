"""What CUDA's caching allocator would do with the same storages: blocks, segments, and what it keeps. Imports no torch.

NOTE [The caching allocator]
Sizes are rounded up to 512 B. Up to 1 MiB they come from segments of 2 MiB, below 10 MiB from segments of 20 MiB, and
above from a segment of their own, rounded up to 2 MiB. The smallest free block that is large enough is taken, and split
if what is left over is large enough: 512 B in small segments, more than 1 MiB in large ones. A block that is given back
is joined with its free neighbors. Segments stay until memory runs out, when those that are wholly free are given back.
One stream is assumed, and no option of PYTORCH_CUDA_ALLOC_CONF. Source: c10/cuda/CUDACachingAllocator.cpp, torch 2.13.
"""

from bisect import bisect_left, insort

from gradinspect.analyses.memory.step import DeviceMemory

MIB = 2**20
SMALLEST = 512
SMALL, SMALL_SEGMENT = MIB, 2 * MIB
MIDDLE, MIDDLE_SEGMENT = 10 * MIB, 20 * MIB
ROUND_LARGE = 2 * MIB


class MemoryBlock:
    """A part of a segment, between its neighbors."""

    __slots__ = ("after", "before", "is_small", "num_bytes", "place")

    def __init__(self, num_bytes: int, place: int, *, is_small: bool) -> None:
        """Begin as the only one."""
        self.num_bytes = num_bytes
        self.place = place  # in an address space where no two segments touch
        self.is_small = is_small
        self.before: MemoryBlock | None = None
        self.after: MemoryBlock | None = None


class CachingAllocator:
    """Gives out blocks. NOTE [The caching allocator]."""

    def __init__(self) -> None:
        """Start with no segment."""
        self.allocated = self.reserved = self._next_place = 0
        self.most_allocated = self.most_reserved = 0
        self._free: dict[bool, list[tuple[int, int]]] = {True: [], False: []}  # sorted: bytes, place
        self._at: dict[int, MemoryBlock] = {}  # place -> free block

    def result(self) -> DeviceMemory:
        """Return the most there was."""
        return DeviceMemory(allocated_bytes=self.most_allocated, reserved_bytes=self.most_reserved)

    def allocate(self, num_bytes: int) -> MemoryBlock | None:
        """Give out a block; None for no bytes."""
        if not num_bytes:
            return None
        size = _rounded(num_bytes, SMALLEST)
        is_small = size <= SMALL
        free = self._free[is_small]
        place = bisect_left(free, (size, -1))
        block = self._take(free[place][1]) if place < len(free) else self._segment(size, is_small=is_small)
        left = block.num_bytes - size
        if left >= SMALLEST if is_small else left > SMALL:
            self._split(block, size)
        self.allocated += block.num_bytes
        self.most_allocated = max(self.most_allocated, self.allocated)
        return block

    def give_back(self, block: MemoryBlock) -> None:
        """Take a block back, and join it with its free neighbors."""
        self.allocated -= block.num_bytes
        if block.before is not None and block.before.place in self._at:
            block = self._joined(self._take(block.before.place), block)
        if block.after is not None and block.after.place in self._at:
            block = self._joined(block, self._take(block.after.place))
        self._offer(block)

    def _segment(self, size: int, *, is_small: bool) -> MemoryBlock:
        num_bytes = SMALL_SEGMENT if is_small else MIDDLE_SEGMENT if size < MIDDLE else _rounded(size, ROUND_LARGE)
        self.reserved += num_bytes
        self.most_reserved = max(self.most_reserved, self.reserved)
        block = MemoryBlock(num_bytes, self._next_place, is_small=is_small)
        self._next_place += num_bytes + 1
        return block

    def _split(self, block: MemoryBlock, size: int) -> None:
        rest = MemoryBlock(block.num_bytes - size, block.place + size, is_small=block.is_small)
        rest.before, rest.after, block.num_bytes = block, block.after, size
        if rest.after is not None:
            rest.after.before = rest
        block.after = rest
        self._offer(rest)

    def _offer(self, block: MemoryBlock) -> None:
        self._at[block.place] = block
        insort(self._free[block.is_small], (block.num_bytes, block.place))

    def _take(self, place: int) -> MemoryBlock:
        block = self._at.pop(place)
        free = self._free[block.is_small]
        del free[bisect_left(free, (block.num_bytes, place))]
        return block

    @staticmethod
    def _joined(first: MemoryBlock, second: MemoryBlock) -> MemoryBlock:
        first.num_bytes += second.num_bytes
        first.after = second.after
        if first.after is not None:
            first.after.before = first
        return first


def _rounded(num_bytes: int, unit: int) -> int:
    return -(-num_bytes // unit) * unit
