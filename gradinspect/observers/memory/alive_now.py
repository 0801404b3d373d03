"""Measure what is alive at one moment of models, optimizers, a graph and variables.

What comes in: labels. What goes out: bytes by kind, each storage once.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

from gradinspect.analyses.memory.alive import AliveBytes, Moment
from gradinspect.analyses.memory.step import CPU, StorageKind, is_accelerator
from gradinspect.observers.memory.storage_purposes import Label
from gradinspect.recording.values.storages import StorageTable
from gradinspect.torch_api.tensors import plain_tensors_only


def measure_alive(labels: Iterable[Label], at: Moment) -> AliveBytes:
    """Sum the storages of some tensors on the fullest accelerator, or on the CPU where none is used.

    Args:
        labels: What storages are for; the first label of each counts.
        at: The moment.
    """
    table = StorageTable({})
    kinds: dict[int, StorageKind] = {}
    with plain_tensors_only():
        for label in labels:
            for number in table.numbers_within(label.tensor):
                kinds.setdefault(number, label.kind)
    devices: dict[str, Counter[StorageKind]] = defaultdict(Counter)
    for number, storage in enumerate(table.records()):
        devices[storage.device][kinds[number]] += storage.num_bytes
    found = [AliveBytes(at=at, on=device, by_kind=dict(by_kind)) for device, by_kind in sorted(devices.items())]
    return max(
        found, key=lambda one: (is_accelerator(one.on), one.num_bytes), default=AliveBytes(at=at, on=CPU, by_kind={})
    )
