"""Events of an accelerator's allocator: its own count is kept, also where events are missing."""

from gradinspect.observers.memory.allocator_replay import AllocatorReplay, with_addresses
from gradinspect.observers.memory.device_ledgers import DeviceLedgers
from gradinspect.observers.memory.storage_ledger import Purpose, StorageMaker
from gradinspect.torch_api.devices.profiling import ProfiledEvent

MAKER = StorageMaker(1, "forward", "aten.mul")


def event(
    time_ns: int, num_bytes: int, address: int | None, allocated: int = 0, device: str = "sim:0"
) -> ProfiledEvent:
    """Make an event of memory."""
    return ProfiledEvent(time_ns, "", num_bytes, address, "aten::empty", "", None, 1, device, allocated, allocated)


def replayed(*events: ProfiledEvent) -> DeviceLedgers:
    """Write some events into ledgers."""
    ledgers = DeviceLedgers(1)
    replay = AllocatorReplay(ledgers, ())
    for one in with_addresses(events):
        replay.memory(one, MAKER)
    return ledgers


def test_what_nobody_was_seen_to_make_is_counted() -> None:
    """Given out before the first event, or by a thread without events: the peak is that of the device."""
    ledgers = replayed(event(1, 10, 8, 110), event(2, 20, 16, 180), event(3, -10, 8, 170))
    ledger = ledgers.of_devices["sim:0"]
    names = {allocation.purpose.name: allocation.num_bytes for allocation in ledger.alive_at_peak()}

    assert ledger.peak is not None
    assert ledger.peak.num_bytes == 180
    assert names["made before, or by others"] == 150
    assert sum(allocation.num_bytes for allocation in ledger.alive_at_peak()) == 180
    assert ledgers.num_bytes("sim:0") == 170


def test_an_allocator_that_tells_no_sum_is_believed_nothing() -> None:
    """As that of the CPU, which counts from the start of the profiler."""
    assert replayed(event(1, 10, 8), event(2, 20, 16)).num_bytes("sim:0") == 30
    assert replayed(event(1, 10, 8, 500, "cpu")).num_bytes("cpu") == 10


def test_one_address_of_two_devices_is_two_places() -> None:
    """Addresses are numbers of one device."""
    ledgers = replayed(event(1, 10, 8, 10), event(2, 7, 8, 7, "sim:1"), event(3, -10, 8, 0))

    assert (ledgers.num_bytes("sim:0"), ledgers.num_bytes("sim:1")) == (0, 7)


def test_what_is_taken_back_without_an_address_is_found() -> None:
    """It has the same size, is not taken back otherwise, and is what is given out again first."""
    made = [event(1, 10, 8, 10), event(2, 10, 16, 20), event(3, 10, 24, 30), event(4, 5, 32, 35)]
    freed = [event(5, -10, None), event(6, -10, 8, 15), event(7, 10, 16, 25)]

    assert [one.address for one in with_addresses([*made, *freed])] == [8, 16, 24, 32, 16, 8, 16]
    assert replayed(*made, *freed).num_bytes("sim:0") == 25


def test_what_is_given_out_without_an_address_is_left_to_the_count() -> None:
    """It is alive, and nobody knows who made it."""
    ledgers = replayed(event(1, 10, 8, 10), event(2, 40, None), event(3, 5, 16, 55))
    unknown = [
        allocation
        for allocation in ledgers.alive()
        if allocation.purpose == Purpose("temporary", "made before, or by others")
    ]

    assert ledgers.num_bytes("sim:0") == 55
    assert [allocation.num_bytes for allocation in unknown] == [40]
