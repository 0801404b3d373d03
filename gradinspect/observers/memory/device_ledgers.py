"""A ledger for each device: its own sum, peak and curve; all go through the same steps. Holds no tensor."""

from collections.abc import Callable, Iterator

from gradinspect.analyses.memory.step import CPU, is_accelerator
from gradinspect.observers.memory.caching_allocator import CachingAllocator
from gradinspect.observers.memory.storage_ledger import Allocation, Ledger, StorageMaker


class DeviceLedgers:
    """Adds up storages by the device that they are on."""

    def __init__(self, num_steps: int, allocator: Callable[[], CachingAllocator] | None = None) -> None:
        """Start empty.

        Args:
            num_steps: After how many steps to end.
            allocator: Makes one for a device, which allocates blocks for the same storages.
        """
        self.num_asked = self.num_steps = num_steps  # it may go on: NOTE [Optimizers in turn]
        self._allocator = allocator
        self.of_devices = {CPU: self._new(CPU)}

    @property
    def is_open(self) -> bool:
        """Whether the steps that were asked for are still running."""
        return self.of_devices[CPU].is_open

    @property
    def meant(self) -> Ledger:
        """That of the fullest accelerator; of the CPU where none is used."""
        used = [ledger for device, ledger in self.of_devices.items() if is_accelerator(device)]
        return max(used, key=needed_bytes, default=self.of_devices[CPU])

    def go_on(self) -> None:
        """Stay open for one step more."""
        self.num_steps += 1
        for ledger in self.of_devices.values():
            ledger.num_steps += 1

    def begin(self, num_bytes: int, maker: StorageMaker, device: str = CPU) -> Allocation:
        """Add a storage."""
        self._reach(maker)
        if device not in self.of_devices:
            self.of_devices[device] = self._new(device)
        return self.of_devices[device].begin(num_bytes, maker)

    def end(self, allocation: Allocation) -> None:
        """Take a storage away."""
        self.of_devices[allocation.device].end(allocation)

    def resize(self, allocation: Allocation, num_bytes: int, maker: StorageMaker) -> None:
        """Give a storage another size."""
        self._reach(maker)
        self.of_devices[allocation.device].resize(allocation, num_bytes, maker)

    def use_elsewhere(self, allocation: Allocation, stream: int) -> None:
        """Note that a storage is used on another stream than it was made on."""
        self.of_devices[allocation.device].use_elsewhere(allocation, stream)

    def may_end(self, step: int) -> None:
        """Note what is alive where a step ends, unless more of it follows."""
        for ledger in self.of_devices.values():
            ledger.may_end(step)

    def forget_steps(self) -> None:
        """Forget the peaks of steps so far."""
        for ledger in self.of_devices.values():
            ledger.forget_steps()

    def alive(self) -> Iterator[Allocation]:
        """Yield what is alive now, on all devices."""
        for ledger in self.of_devices.values():
            yield from ledger.alive()

    def reserve(self, device: str, num_bytes: int) -> None:
        """Note what a device's allocator has reserved."""
        ledger = self.of_devices.get(device)
        if ledger is not None and ledger.is_open:
            ledger.reserved_bytes = max(ledger.reserved_bytes, num_bytes)

    def num_bytes(self, device: str) -> int:
        """Return what is alive on a device."""
        return self.of_devices[device].num_bytes if device in self.of_devices else 0

    def _reach(self, maker: StorageMaker) -> None:
        """Let each device come to the same part of the same step, though nothing may be made there."""
        for ledger in self.of_devices.values():
            ledger.reach(maker)

    def _new(self, device: str) -> Ledger:
        return Ledger(self.num_steps, None if self._allocator is None else self._allocator(), device)


def needed_bytes(ledger: Ledger) -> int:
    """Return what a device must have: what its allocator reserves, where that is known."""
    if ledger.allocator is not None:
        return ledger.allocator.most_reserved
    return max(ledger.reserved_bytes, 0 if ledger.peak is None else ledger.peak.num_bytes)
