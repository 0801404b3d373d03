"""Measured peaks of accelerators beside their own counts; skipped where the simulated device cannot be built."""

import json
from pathlib import Path
from typing import Any

import pytest
from runs import gradinspect

TESTS = Path(__file__).parents[2]
PROGRAM = f"""
import json, sys
sys.path.append({str(TESTS)!r})
import torch
from simulated_device import register
from simulated_device.building import build, load
from torch import nn
from torch.utils.checkpoint import checkpoint

register(load(build()))
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 64)).to("sim:0")
        self.second = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 8)).to("sim:1")

    def forward(self, x):
        return self.second(checkpoint(self.first, x, use_reentrant=False).to("sim:1"))


net = Net()
optimizer = torch.optim.Adam(net.parameters())
for _ in range(2):
    x = torch.randn(2048, 64).pin_memory()
    loss = net(x.to("sim:0", non_blocking=True).requires_grad_()).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("WITNESS", json.dumps([torch.sim.max_memory_allocated(0), torch.sim.max_memory_allocated(1)]))
"""


def measured(folder: Path) -> tuple[list[int], dict[str, Any]]:
    """Return what the devices counted, and what `fit --real` says."""
    (folder / "train.py").write_text(PROGRAM)
    done = gradinspect("fit", "train.py", "--real", "--by", "storage", "--format", "json", cwd=folder)

    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("WITNESS "))
    return json.loads(line.removeprefix("WITNESS ")), json.loads(done.stdout[done.stdout.index("\n{") :])


def test_peaks_are_those_that_the_devices_counted(tmp_path: Path) -> None:
    """To the byte, on each; a checkpoint computes again on the device's thread, and pinned memory has a row."""
    building = pytest.importorskip("simulated_device.building")
    if building.missing() is not None:
        pytest.skip(f"no simulated device: {building.missing()}")
    counted, document = measured(tmp_path)
    devices = {one["on"]: one for one in document["devices"]}

    assert [devices[f"sim:{n}"]["peak_bytes"] for n in range(2)] == counted
    assert document["on"] == "sim:0"
    assert devices["pinned"]["peak_bytes"] in (2048 * 64 * 4, 2 * 2048 * 64 * 4)
    assert devices["sim:0"]["by_kind"]["recomputed"] >= 2048 * 512 * 4
    assert "recomputed" not in devices["sim:1"]["by_kind"]
    for one in devices.values():
        assert sum(one["by_kind"].values()) == one["peak_bytes"]
