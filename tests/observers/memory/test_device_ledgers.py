"""A ledger for each device: sums that are never added, and steps that all go through together."""

from gradinspect.observers.memory.device_ledgers import DeviceLedgers
from gradinspect.observers.memory.storage_ledger import StorageMaker

FORWARD = StorageMaker(1, "forward", "aten.mul")
BACKWARD = FORWARD._replace(phase="backward")


def test_the_bytes_of_devices_are_not_added() -> None:
    """Each has a peak of its own, at a moment of its own."""
    ledgers = DeviceLedgers(1)
    ledgers.end(ledgers.begin(100, FORWARD, "sim:0"))
    ledgers.begin(60, FORWARD, "sim:1")
    ledgers.begin(1000, FORWARD)
    peaks = {device: ledger.peak and ledger.peak.num_bytes for device, ledger in ledgers.of_devices.items()}

    assert peaks == {"cpu": 1000, "sim:0": 100, "sim:1": 60}
    assert [ledgers.num_bytes(device) for device in ("cpu", "sim:0", "sim:1", "sim:2")] == [1000, 0, 60, 0]


def test_the_fullest_accelerator_is_meant() -> None:
    """The CPU, or its pinned memory, only where none is used, however full it is."""
    ledgers = DeviceLedgers(1)
    ledgers.begin(1000, FORWARD)
    ledgers.begin(2000, FORWARD, "pinned")

    assert ledgers.meant.device == "cpu"

    ledgers.begin(10, FORWARD, "sim:0")
    ledgers.begin(20, FORWARD, "sim:1")

    assert ledgers.meant.device == "sim:1"


def test_a_step_goes_on_where_nothing_is_made() -> None:
    """What a device holds is held there when backward begins, though only the CPU makes something then."""
    ledgers = DeviceLedgers(2)
    ledgers.begin(70, FORWARD, "sim:0")
    ledgers.begin(1, BACKWARD)
    ledgers.begin(2, FORWARD._replace(step=2))
    device = ledgers.of_devices["sim:0"]

    assert device.backward_bytes == {1: 70}
    assert device.end_bytes[1] == 70
    assert {step: peak.num_bytes for step, peak in device.step_peaks.items()} == {1: 70, 2: 70}

    ledgers.begin(3, FORWARD._replace(step=3))
    ledgers.begin(500, FORWARD._replace(step=3), "sim:0")

    assert not ledgers.is_open
    assert ledgers.num_bytes("sim:0") == 70
