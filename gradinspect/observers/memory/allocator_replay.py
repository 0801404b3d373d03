"""From the events of allocators to the ledgers of their devices.

What comes in: what torch's profiler has seen of memory, in time. What goes out: allocations. Holds no tensor.

NOTE [The device's own count]
The allocator of an accelerator says with each event how much is allocated in all. What the events do not add up to
was allocated before the first of them, or by a thread whose events the profiler does not have: it is alive too, and its
maker is not known. So the peak is that of the device, to the byte, without what we allocate meanwhile.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from gradinspect.analyses.memory.step import is_accelerator
from gradinspect.observers.memory.device_ledgers import DeviceLedgers
from gradinspect.observers.memory.storage_ledger import Allocation, Purpose, StorageMaker
from gradinspect.torch_api.compiled_graphs import COMPILED_NODE
from gradinspect.torch_api.devices.profiling import ProfiledEvent

Place: TypeAlias = tuple[str, int]  # device and address
_BEFORE = StorageMaker(0, "setup", "")
_UNKNOWN = Purpose("temporary", "made before, or by others")


class AllocatorReplay:
    """Writes what the profiler has seen into the ledgers."""

    def __init__(self, ledgers: DeviceLedgers, before: Iterable[tuple[Place, int, Purpose]]) -> None:
        """Start with what was alive already."""
        self._ledgers = ledgers
        self._allocations: dict[Place, Allocation] = {}
        self._own: dict[Place, int] = {}  # bytes that we have
        self._own_bytes = Counter[str]()  # the same of each device
        self._unknown: dict[str, Allocation] = {}  # of each device: what no event explains
        for place, num_bytes, purpose in before:
            if place not in self._allocations:
                self._allocations[place] = ledgers.begin(num_bytes, _BEFORE, place[0])
            self._allocations[place].label(purpose)

    def mark(self, freed: Iterable[Place], labels: Iterable[tuple[Place, Purpose]]) -> None:
        """Go on to another mark."""
        for place in freed:
            self._end(place)
        for place, purpose in labels:
            if place in self._allocations:
                self._allocations[place].label(purpose)

    def pinned(self, made: Iterable[tuple[Place, int]], maker: StorageMaker) -> None:
        """Start with memory that no event reports."""
        for place, num_bytes in made:
            self._end(place)
            self._allocations[place] = self._ledgers.begin(num_bytes, maker, place[0])

    def memory(self, event: ProfiledEvent, maker: StorageMaker) -> None:
        """Allocate memory, or free it."""
        place = event.device, event.address or 0
        if event.num_bytes >= 0:
            self._end(place)  # another thread freed it, which the profiler does not see
        if self._is_own(event, place):
            return
        if is_accelerator(event.device):
            self._follow(event, maker)
        if event.num_bytes >= 0:
            self._allocations[place] = self._ledgers.begin(event.num_bytes, maker, event.device)
        else:
            self._end(place)

    def _is_own(self, event: ProfiledEvent, place: Place) -> bool:
        """Return whether memory is ours: it is counted apart, as the device counts it too."""
        had = self._own.pop(place, None)
        has = event.num_bytes if event.is_own and event.num_bytes >= 0 else None
        self._own_bytes[event.device] += (has or 0) - (had or 0)
        if has is not None:
            self._own[place] = has
        return has is not None or (had is not None and event.num_bytes < 0)

    def _end(self, place: Place) -> None:
        if place in self._allocations:
            self._ledgers.end(self._allocations.pop(place))

    def _follow(self, event: ProfiledEvent, maker: StorageMaker) -> None:
        """Be equal to what was allocated on the device before an event. NOTE [The device's own count]."""
        device, ledgers = event.device, self._ledgers
        unknown = self._unknown.get(device)
        known = ledgers.num_bytes(device) - (0 if unknown is None else unknown.num_bytes)
        missing = max(event.allocated - self._own_bytes[device] - event.num_bytes - known, 0)
        if event.allocated and missing != (0 if unknown is None else unknown.num_bytes):
            if unknown is not None:
                ledgers.end(unknown)
            self._unknown[device] = unknown = ledgers.begin(missing, maker, device)
            unknown.maker, unknown.purpose = _BEFORE, _UNKNOWN
        ledgers.reserve(device, event.reserved)


def maker_of(event: ProfiledEvent, running: StorageMaker, identity: int | None) -> StorageMaker:
    """Say who made memory, given what its thread ran, and the identity of the node that the engine ran."""
    op = event.op.replace("aten::", "aten.")
    if event.node and running.call is None:
        frame = running.frame if identity is None else None  # the line that called backward
        is_compiled = running.is_compiled or event.node == COMPILED_NODE
        return running._replace(op=op, node=event.node, sequence_nr=identity, frame=frame, is_compiled=is_compiled)
    return running._replace(op=op)


def with_addresses(events: Sequence[ProfiledEvent]) -> list[ProfiledEvent]:
    """Find out what is freed where no address is known: memory of the same size whose end is not known otherwise.

    Of several, it is the one whose address is reused first. What has no address is left to the device's count.
    """
    ends = _ends(events)
    waiting: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)  # device, bytes -> reuse, address
    found: list[ProfiledEvent] = []
    for place, event in enumerate(events):
        key = event.device, abs(event.num_bytes)
        if event.address is not None:
            found.append(event)
            if place in ends:
                waiting[key].append((ends[place], event.address))
        elif event.num_bytes < 0 and waiting[key]:
            earliest = min(waiting[key])
            waiting[key].remove(earliest)
            found.append(event._replace(address=earliest[1]))
    return found


def _ends(events: Sequence[ProfiledEvent]) -> dict[int, int]:
    """Return for each storage that is not seen to end when its address is reused; by the number of its event.

    Empty where all addresses are known.
    """
    if all(event.address is not None for event in events):
        return {}
    ends, latest = dict[int, int](), dict[Place, int]()
    for number, event in enumerate(events):
        if event.name or event.address is None or not is_accelerator(event.device):
            continue
        place = event.device, event.address
        if place in latest:
            before = latest.pop(place)
            if event.num_bytes >= 0:
                ends[before] = number
        if event.num_bytes > 0:
            latest[place] = number
    return ends | dict.fromkeys(latest.values(), len(events))
