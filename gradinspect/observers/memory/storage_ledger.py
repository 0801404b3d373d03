"""The life of every storage: a sum of what is alive, its peak, and what was alive at it. Holds no tensor.

NOTE [What was alive at the peak]
The peak is known only when it is over. Each storage has the number of its birth, and the peak the number of the birth
that made it. What was born until then and is alive, or has died since, was alive at the peak. So only those that died
since are kept, until the next, higher peak: there are never more than were alive at once.
"""

from collections.abc import Iterator
from typing import NamedTuple

from gradinspect.analyses.memory.step import CPU, KINDS, Phase, StorageKind
from gradinspect.observers.memory.caching_allocator import CachingAllocator, MemoryBlock
from gradinspect.observers.memory.storage_curve import Curve

_RANKS = {kind: rank for rank, kind in enumerate(KINDS)}


class StorageMaker(NamedTuple):
    """What ran when a storage was made; everything is looked up at the end, for those that matter."""

    step: int
    phase: Phase
    op: str
    node: str = ""
    sequence_nr: int | None = None  # of the node
    call: int | None = None  # place of the innermost module call that was running: `Recorder.running_call`
    frame: int | None = None  # number of the user's line
    is_compiled: bool = False  # a function under torch.compile was running


class Purpose(NamedTuple):
    """What a storage is for."""

    kind: StorageKind
    name: str = ""
    owner: str | None = None  # path of the module that it belongs to, "" is the outermost; None: it is not known
    shape: str = ""  # of one that ranks share


class Allocation:
    """One storage, from its allocation on."""

    __slots__ = ("birth", "device", "maker", "num_bytes", "purpose")

    def __init__(self, num_bytes: int, maker: StorageMaker, birth: int, device: str = CPU) -> None:
        """Start."""
        self.num_bytes = num_bytes
        self.device = device
        self.maker = maker
        self.birth = birth
        is_recomputed = maker.phase == "backward" and maker.call is not None
        self.purpose = Purpose("recomputed" if is_recomputed else "temporary")

    @property
    def kind(self) -> StorageKind:
        """What it is for, in short."""
        return self.purpose.kind

    def label(self, purpose: Purpose) -> None:
        """Say what it is for; the more lasting purpose counts."""
        if _RANKS[purpose.kind] < _RANKS[self.purpose.kind]:
            self.purpose = purpose


class Peak(NamedTuple):
    """The most that was alive at once, and what ran then."""

    num_bytes: int
    maker: StorageMaker


class Ledger:
    """Adds up the storages of one device."""

    def __init__(self, num_steps: int, allocator: CachingAllocator | None = None, device: str = CPU) -> None:
        """Start empty.

        Args:
            num_steps: After how many steps to end.
            allocator: Allocates blocks for the same storages.
            device: Where they are.
        """
        self.num_steps = num_steps
        self.device = device
        self.allocator = allocator
        self._blocks: dict[Allocation, MemoryBlock | None] = {}
        self._step = 0
        self._phase: Phase = "setup"
        self.num_bytes = 0
        self.reserved_bytes = 0  # the most, if the allocator of the device reports it
        self.peak: Peak | None = None
        self.step_peaks: dict[int, Peak] = {}
        self.end_bytes: dict[int, int] = {}  # after each step
        # of each step, when backward begins; the most, if it does so several times
        self.backward_bytes: dict[int, int] = {}
        self.is_open = True
        self._births = 0
        self._peak_birth = 0
        self._alive: dict[Allocation, None] = {}
        self._dead_since_peak: list[Allocation] = []
        self.curve = Curve[Allocation]()

    def begin(self, num_bytes: int, maker: StorageMaker) -> Allocation:
        """Add a storage."""
        self.reach(maker)
        self._births += 1
        allocation = Allocation(num_bytes, maker, self._births, self.device)
        if self.is_open:
            self._alive[allocation] = None
            self._take_block(allocation)
            self._grow(num_bytes, maker)
        return allocation

    def end(self, allocation: Allocation) -> None:
        """Take a storage away."""
        if self.is_open and allocation in self._alive:
            del self._alive[allocation]
            self._give_block_back(allocation)
            self.num_bytes -= allocation.num_bytes
            self.curve.end(allocation, self._births)
            if allocation.birth <= self._peak_birth:
                self._dead_since_peak.append(allocation)

    def resize(self, allocation: Allocation, num_bytes: int, maker: StorageMaker) -> None:
        """Resize a storage: its old memory is freed once the new memory is there, with the same purpose."""
        self.reach(maker)
        if not self.is_open or allocation not in self._alive:
            return
        before = Allocation(allocation.num_bytes, allocation.maker, allocation.birth, self.device)
        before.purpose = allocation.purpose
        del self._alive[allocation]
        self._alive[before] = None
        if self.allocator is not None:
            self._blocks[before] = self._blocks.pop(allocation, None)
        self._births += 1
        allocation.birth, allocation.num_bytes = self._births, num_bytes
        self._alive[allocation] = None
        self._take_block(allocation)
        self._grow(num_bytes, maker)
        self.end(before)

    def may_end(self, step: int) -> None:
        """Note what is alive where a step ends, unless more of it follows: a program may end here, and its objects."""
        if self.is_open and step == self._step:
            self.end_bytes[step] = self.num_bytes

    def forget_steps(self) -> None:
        """Forget the peaks of steps so far, but not that of what came before them."""
        self.step_peaks = {step: peak for step, peak in self.step_peaks.items() if not step}
        self.peak = self.step_peaks.get(0)

    def alive_at_peak(self) -> Iterator[Allocation]:
        """Yield what was alive at the peak. NOTE [What was alive at the peak]."""
        yield from (allocation for allocation in self._alive if allocation.birth <= self._peak_birth)
        yield from self._dead_since_peak

    def alive(self) -> Iterator[Allocation]:
        """Yield what is alive now."""
        yield from self._alive

    def _take_block(self, allocation: Allocation) -> None:
        if self.allocator is not None:
            self._blocks[allocation] = self.allocator.allocate(allocation.num_bytes)

    def _give_block_back(self, allocation: Allocation) -> None:
        block = self._blocks.pop(allocation, None)
        if block is not None and self.allocator is not None:
            self.allocator.give_back(block)

    def reach(self, maker: StorageMaker) -> None:
        """Go on to a part of a step: steps before it have ended, and what is alive when backward begins is kept."""
        if self.is_open and maker.step != self._step:
            self.end_bytes[self._step] = self.num_bytes
            self._step = maker.step
            self.is_open = maker.step <= self.num_steps
            if self.is_open and self.num_bytes:  # it may be that nothing is made here in this step
                self.step_peaks[maker.step] = Peak(self.num_bytes, maker)
        if self.is_open and maker.phase == "backward" and self._phase == "forward":
            self.backward_bytes[maker.step] = max(self.num_bytes, self.backward_bytes.get(maker.step, 0))
        if self.allocator is not None and maker.phase != self._phase:
            self.allocator.catch_up()
        self._phase = maker.phase

    def use_elsewhere(self, allocation: Allocation, stream: int) -> None:
        """Note that a storage is used on another stream than it was made on."""
        block = self._blocks.get(allocation)
        if block is not None and self.allocator is not None:
            self.allocator.use(block, stream)

    def _grow(self, num_bytes: int, maker: StorageMaker) -> None:
        self.num_bytes += num_bytes
        if self.peak is None or self.num_bytes > self.peak.num_bytes:
            self.peak = Peak(self.num_bytes, maker)
            self._peak_birth = self._births
            self._dead_since_peak.clear()
        step_peak = self.step_peaks.get(maker.step)
        if step_peak is None or self.num_bytes > step_peak.num_bytes:
            self.step_peaks[maker.step] = Peak(self.num_bytes, maker)
        self.curve.grow(maker.step, maker.phase, self.num_bytes, self._births)
