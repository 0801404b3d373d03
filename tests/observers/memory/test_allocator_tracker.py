"""Measured memory, where torch's profiler does not hear of everything."""

from pathlib import Path
from typing import Any

import pytest
from runs import gradinspect

from gradinspect.observers.memory import allocator_tracker
from gradinspect.observers.memory.allocator_tracker import AllocatorTracker
from gradinspect.observers.memory.device_ledgers import DeviceLedgers
from gradinspect.observers.memory.storage_ledger import StorageMaker
from gradinspect.recording.recorder import Recorder
from gradinspect.torch_api.devices.profiling import ProfiledEvent

ONE_RANK = """
import torch
from torch import distributed
distributed.init_process_group("gloo", init_method=f"file://{__file__}.store", rank=0, world_size=1)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(2):
    model(torch.ones(2, 4)).sum().backward()
    distributed.all_reduce(model.weight.grad)
    optimizer.step()
    optimizer.zero_grad()
distributed.destroy_process_group()
"""


def given_out(time_ns: int, num_bytes: int, address: int) -> ProfiledEvent:
    """Make an event of memory."""
    return ProfiledEvent(time_ns, "", num_bytes, address, "aten::empty", "", None)


def test_memory_that_is_given_out_again_was_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """By another thread, whose events the profiler does not have."""
    events = [given_out(1, 100, 8), given_out(2, 30, 16), given_out(3, 200, 8), given_out(4, -30, 16)]

    def recorded(_profiler: Any, mark: str) -> list[ProfiledEvent]:
        return [ProfiledEvent(0, f"{mark}0", 0, 0, "", "", None), *events]

    monkeypatch.setattr(allocator_tracker, "profiled_events", recorded)
    ledgers = DeviceLedgers(1)
    with Recorder() as recorder, AllocatorTracker(ledgers, lambda: StorageMaker(1, "forward", ""), recorder):
        pass

    assert ledgers.num_bytes("cpu") == 200


def test_a_measurement_with_gloo_says_that_it_is_too_high(tmp_path: Path) -> None:
    """Its threads free copies unheard. A prediction counts none, so it does not say so."""
    (tmp_path / "train.py").write_text(ONE_RANK)

    measured = gradinspect("fit", "train.py", "--real", cwd=tmp_path)
    alone = gradinspect("fit", "train.py", "--world-size", "1", cwd=tmp_path)

    assert (measured.returncode, alone.returncode) == (0, 0), measured.stderr + alone.stderr
    assert "gloo copies what it sends" in " ".join(measured.stdout.split())
    assert "gloo copies what it sends" not in " ".join(alone.stdout.split())
