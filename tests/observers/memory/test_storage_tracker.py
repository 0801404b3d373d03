"""Storages of fake tensors: each counts on the device where it would be."""

from typing import Any

import torch

from gradinspect.observers.memory.device_ledgers import DeviceLedgers
from gradinspect.observers.memory.storage_ledger import StorageMaker
from gradinspect.observers.memory.storage_tracker import StorageTracker
from gradinspect.torch_api.fakes import FakeTensor, fake_tensor_mode


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
