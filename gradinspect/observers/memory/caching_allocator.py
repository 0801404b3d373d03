"""What CUDA's caching allocator would do with the same storages: blocks, segments, and what it keeps. Imports no torch.

NOTE [The caching allocator]
Sizes are rounded up to 512 B. Up to 1 MiB they come from segments of 2 MiB, below 10 MiB from segments of 20 MiB, and
above from a segment of their own, rounded up to 2 MiB. The smallest free block that is large enough is taken, and split
if what is left over is large enough: 512 B in small segments, more than 1 MiB in large ones. A block that is given back
is joined with its free neighbors. Segments stay until memory runs out, when those that are wholly free are given back.
With `expandable_segments:True` there is one segment for small blocks and one for others, which grow by 2 MiB and by
20 MiB as far as the free block at their end is too small; any rest of 512 B is split off. A block belongs to the stream
that it was made on. One that another stream has used is not free when it is given back, but when that stream has come
so far: here, when another part of the step begins. Other options of PYTORCH_CUDA_ALLOC_CONF are not followed.
Source: c10/cuda/CUDACachingAllocator.cpp, torch 2.13.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable
from typing import TypeAlias

from gradinspect.analyses.memory.step import DeviceMemory

MIB = 2**20
SMALLEST = 512
SMALL, SMALL_SEGMENT = MIB, 2 * MIB
MIDDLE, MIDDLE_SEGMENT = 10 * MIB, 20 * MIB
ROUND_LARGE = 2 * MIB
_APART = 2**60  # between segments that grow
_Pool: TypeAlias = tuple[bool, int]  # whether blocks are small, and their stream


class MemoryBlock:
    """A part of a segment, between its neighbors."""

    __slots__ = ("after", "before", "is_small", "num_bytes", "place", "stream", "used_on")

    def __init__(self, num_bytes: int, place: int, *, is_small: bool, stream: int = 0) -> None:
        """Start as the only one."""
        self.num_bytes = num_bytes
        self.place = place  # in an address space where no two segments touch
        self.is_small = is_small
        self.stream = stream  # it was made on
        self.used_on: set[int] = set()  # other streams
        self.before: MemoryBlock | None = None
        self.after: MemoryBlock | None = None


class CachingAllocator:
    """Allocates blocks. NOTE [The caching allocator]."""

    def __init__(self, is_expandable: Callable[[], bool] = lambda: False) -> None:
        """Start with no segment.

        Args:
            is_expandable: Returns whether segments grow; asked when the first one is needed.
        """
        self.allocated = self.reserved = self._next_place = 0
        self.most_allocated = self.most_reserved = 0
        self._ask = is_expandable
        self._expands: bool | None = None
        self._free: dict[_Pool, list[tuple[int, int]]] = defaultdict(list)  # sorted: bytes, place
        self._at: dict[int, MemoryBlock] = {}  # place -> free block
        self._last: dict[_Pool, MemoryBlock] = {}  # of each segment that grows: the block at its end
        self._waiting: list[MemoryBlock] = []  # given back, while another stream may still use them

    @property
    def expands(self) -> bool:
        """Whether segments grow."""
        if self._expands is None:
            self._expands = self._ask()
        return self._expands

    def result(self) -> DeviceMemory:
        """Return the most there was."""
        return DeviceMemory(allocated_bytes=self.most_allocated, reserved_bytes=self.most_reserved)

    def allocate(self, num_bytes: int, stream: int = 0) -> MemoryBlock | None:
        """Allocate a block; None for no bytes."""
        if not num_bytes:
            return None
        size = _rounded(num_bytes, SMALLEST)
        pool = size <= SMALL, stream
        block = self._found(pool, size) or (self._grown(pool, size) if self.expands else self._segment(pool, size))
        left = block.num_bytes - size
        if left >= SMALLEST if pool[0] or self.expands else left > SMALL:
            self._split(block, size)
        self.allocated += block.num_bytes
        self.most_allocated = max(self.most_allocated, self.allocated)
        return block

    def use(self, block: MemoryBlock, stream: int) -> None:
        """Note that another stream uses a block, as `record_stream` does."""
        if stream != block.stream:
            block.used_on.add(stream)

    def give_back(self, block: MemoryBlock) -> None:
        """Take a block back, and join it with its free neighbors, unless another stream may still use it."""
        self.allocated -= block.num_bytes
        if block.used_on:
            self._waiting.append(block)
        else:
            self._release(block)

    def catch_up(self) -> None:
        """Note that all streams have finished their work."""
        waiting, self._waiting = self._waiting, []
        for block in waiting:
            block.used_on.clear()
            self._release(block)

    def _release(self, block: MemoryBlock) -> None:
        if block.before is not None and block.before.place in self._at:
            block = self._joined(self._take(block.before), block)
        if block.after is not None and block.after.place in self._at:
            block = self._joined(block, self._take(block.after))
        self._offer(block)

    def _found(self, pool: _Pool, size: int) -> MemoryBlock | None:
        """Take the smallest free block that is large enough; that at the end of a segment that grows comes last."""
        free = self._free[pool]
        fitting = (self._at[place] for _, place in free[bisect_left(free, (size, -1)) :])
        last, block = self._last.get(pool), next(fitting, None)
        if block is not None and block is last:
            block = next(fitting, block)
        return None if block is None else self._take(block)

    def _segment(self, pool: _Pool, size: int) -> MemoryBlock:
        num_bytes = SMALL_SEGMENT if pool[0] else MIDDLE_SEGMENT if size < MIDDLE else _rounded(size, ROUND_LARGE)
        block = MemoryBlock(num_bytes, self._next_place, is_small=pool[0], stream=pool[1])
        self._reserve(num_bytes)
        self._next_place += num_bytes + 1
        return block

    def _grown(self, pool: _Pool, size: int) -> MemoryBlock:
        """Let the segment of a pool grow, and return the block at its end."""
        last = self._last.get(pool)
        tail = last if last is not None and last.place in self._at else None
        page = SMALL_SEGMENT if pool[0] else MIDDLE_SEGMENT
        more = _rounded(size - (0 if tail is None else tail.num_bytes), page)
        self._reserve(more)
        if tail is not None:
            self._take(tail).num_bytes += more
            return tail
        place = len(self._last) * _APART if last is None else last.place + last.num_bytes
        block = MemoryBlock(more, place, is_small=pool[0], stream=pool[1])
        if last is not None:
            last.after, block.before = block, last
        self._last[pool] = block
        return block

    def _reserve(self, num_bytes: int) -> None:
        self.reserved += num_bytes
        self.most_reserved = max(self.most_reserved, self.reserved)

    def _split(self, block: MemoryBlock, size: int) -> None:
        rest = MemoryBlock(block.num_bytes - size, block.place + size, is_small=block.is_small, stream=block.stream)
        rest.before, rest.after, block.num_bytes = block, block.after, size
        if rest.after is not None:
            rest.after.before = rest
        block.after = rest
        self._ends_with(block, rest)
        self._offer(rest)

    def _offer(self, block: MemoryBlock) -> None:
        self._at[block.place] = block
        insort(self._free[block.is_small, block.stream], (block.num_bytes, block.place))

    def _take(self, block: MemoryBlock) -> MemoryBlock:
        del self._at[block.place]
        free = self._free[block.is_small, block.stream]
        del free[bisect_left(free, (block.num_bytes, block.place))]
        return block

    def _joined(self, first: MemoryBlock, second: MemoryBlock) -> MemoryBlock:
        first.num_bytes += second.num_bytes
        first.after = second.after
        if first.after is not None:
            first.after.before = first
        self._ends_with(second, first)
        return first

    def _ends_with(self, before: MemoryBlock, now: MemoryBlock) -> None:
        """Replace the block at the end of a segment that grows."""
        pool = now.is_small, now.stream
        if self._last.get(pool) is before:
            self._last[pool] = now


def _rounded(num_bytes: int, unit: int) -> int:
    return -(-num_bytes // unit) * unit
