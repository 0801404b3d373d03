"""Storages of fake tensors: each counts on the device where it would be."""

from typing import Any

import numpy
import torch

from gradinspect.observers.memory.device_ledgers import DeviceLedgers
from gradinspect.observers.memory.storage_ledger import StorageMaker
from gradinspect.observers.memory.storage_tracker import StorageTracker
from gradinspect.torch_api.fakes import FakeTensor, fake_tensor_mode
from gradinspect.torch_api.modes import TorchDispatchMode


def test_fake_tensors_count_on_their_own_device() -> None:
    """The storage of all of them is on meta; what is on meta in the program counts nowhere."""
    ledgers = DeviceLedgers(1)

    def maker(op: str, _node: Any) -> StorageMaker:
        return StorageMaker(1, "forward", op)

    with fake_tensor_mode() as mode, StorageTracker(ledgers, maker):
        empty = torch.empty(100, device="meta")
        there = [FakeTensor(mode, torch.empty(100, device="meta"), torch.device(f"cuda:{n}")) for n in range(2)]
        made = [there[0] * there[0], there[1] + there[1], torch.zeros(50).exp(), empty + empty]
        found = {device: ledger.num_bytes for device, ledger in ledgers.of_devices.items()}
        del made

    assert found == {"cpu": 200, "cuda:0": 400, "cuda:1": 400}
    assert ledgers.meant.device == "cuda:0"
    assert [ledgers.num_bytes(device) for device in found] == [0, 0, 0]


def test_memory_that_processes_share_counts_and_that_of_an_array_does_not() -> None:
    """As batches of a loader's workers, which torch rebuilds outside the fake mode, from a storage."""
    ledgers = DeviceLedgers(1)
    shared = torch.zeros(30).share_memory_().untyped_storage()
    sent = shared._share_fd_cpu_()
    array = torch.from_numpy(numpy.zeros(90, dtype=numpy.float32))

    with StorageTracker(ledgers, lambda op, _node: StorageMaker(1, "forward", op)):
        arrived = torch.empty(0).set_(torch.UntypedStorage._new_shared_fd_cpu(*sent)).resize_(5, 6)
        alone = ledgers.num_bytes("cpu")
        made = arrived + 1, array + 1
        both = ledgers.num_bytes("cpu")
        del made

    assert not arrived.untyped_storage().resizable()
    assert (alone, both) == (120, 120 + 120 + 360)


def test_ranges_of_a_profiler_are_no_operators() -> None:
    """Each step of an optimizer is one: with tens of thousands of them before training, fake tensors take minutes."""
    seen: list[str] = []

    class Below(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: object, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Below(), StorageTracker(DeviceLedgers(1), lambda op, _node: StorageMaker(1, "forward", op)):
        seen.clear()  # of what entering has run
        with torch.autograd.profiler.record_function("step"):
            torch.ones(1)

    assert seen == ["aten.ones.default"]


def test_a_number_that_a_node_keeps_is_there_from_the_next_operator_on() -> None:
    """As long as the node is; where nothing is recorded, none is kept, and a tensor is not a number."""
    ledgers = DeviceLedgers(1)

    def more(start: int) -> int:
        torch.empty(0)
        return ledgers.num_bytes("cpu") - start

    with fake_tensor_mode(), StorageTracker(ledgers, lambda op, _node: StorageMaker(1, "forward", op)):
        x = torch.ones(3, requires_grad=True)
        start = ledgers.num_bytes("cpu")
        product, quotient = x * 0.5, x / 3
        kept = more(start)
        del product, quotient
        gone = more(start)
        with torch.no_grad():
            without = x * 0.5
            kept_without = more(start)
        del without
        square = x * x
        kept_of_tensors = more(start)
        del square
        in_place = x + x
        in_place *= 0.5
        in_place /= 3
        kept_in_place = more(start)
        del in_place
        rows = (x + x).view(1, 3)
        rows *= 0.5
        rows.view(3)  # a wait for a lock of its own, if we had asked the view for its node
        kept_of_view = more(start)

    assert (kept, gone, kept_without, kept_of_tensors) == (2 * (12 + 8), 0, 12, 12)
    assert (kept_in_place, kept_of_view) == (12 + 2 * 8, 12)


def test_nothing_is_looked_at_once_all_steps_are_over() -> None:
    """The program goes on to its next backward call, as far as all of its forward pass."""
    ledgers = DeviceLedgers(1)
    step = 1
    made: list[str] = []

    def maker(op: str, _node: Any) -> StorageMaker:
        made.append(op)
        return StorageMaker(step, "forward", op)

    with fake_tensor_mode(), StorageTracker(ledgers, maker):
        x = torch.ones(3)
        step = 2
        x.exp()
        made.clear()
        later = x.sin() * 0.5

    assert not ledgers.is_open
    assert made == []
    assert later.shape == (3,)
