"""Programs on two devices, and programs that use none though one is there, under the verbs from end to end."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from device_runs import PLAIN, SIMULATED, DeviceRuns, Ran

pytestmark = pytest.mark.slow

SPLIT = """\
import torch
from torch import nn
torch.manual_seed(0)
first, second = nn.Linear(64, 64), nn.Linear(64, 8)
first.to("sim:0")
second.to("sim:1")
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=1e-3, momentum=0.9)
for step in range(3):
    x = torch.randn(16, 64, device="sim:0")
    h = torch.relu(first(x)).to("sim:1")
    loss = second(h).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
ON_CPU = (
    SPLIT.replace("sim:0", "cpu")
    .replace("sim:1", "cpu")
    .replace("nn.Linear(64, 64)", 'nn.Linear(64, 64, device="cpu")')
)
ON_CPU = ON_CPU.replace("nn.Linear(64, 8)", 'nn.Linear(64, 8, device="cpu")')
CAPTURED = """\
import torch
from torch import nn
torch.manual_seed(0)
captured = [False]
torch.sim.is_current_stream_capturing = lambda: captured[0]
model = nn.Linear(64, 8)
for step in range(4):
    x = torch.randn(16, 64)
    captured[0] = step < 2
    before = torch.sim.allocations()
    model(x).square().mean().backward()
    print("allocations", torch.sim.allocations() - before, flush=True)
    captured[0] = False
    model.zero_grad(set_to_none=False)
"""
CAPTURED_STEPS = """\
import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
captured = [False]
torch.sim.is_current_stream_capturing = lambda: captured[0]
images = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(2 * 14 * 14, 4))
words = nn.Sequential(nn.Embedding(10, 8), nn.Flatten(), nn.Linear(8 * 6, 4))
optimizer = torch.optim.SGD([*images.parameters(), *words.parameters()], lr=1e-3)
weight = torch.ones(4)
for step in range(4):
    x, ids, labels = torch.rand(8, 3, 16, 16), torch.randint(10, (8, 6)), torch.randint(4, (8,))
    captured[0] = step < 2
    before, allocations = torch.sim.witnessed().values_read, torch.sim.allocations()
    optimizer.zero_grad()
    scores = images(x) - words(ids).masked_fill(labels[:, None] == 0, -1e9).softmax(1)
    loss = F.cross_entropy(scores, labels, weight=weight) + F.mse_loss(scores.mean(1), labels.float() + 100)
    loss.backward()
    nn.utils.clip_grad_norm_(images.parameters(), 1.0, foreach=False)
    optimizer.step()
    with torch.no_grad():
        images(x).argmax(1).eq(labels).float().mean()
    read, allocated = torch.sim.witnessed().values_read - before, torch.sim.allocations() - allocations
    captured[0] = False
    print("captured", read, allocated, flush=True)
"""
VERBS = (
    "trace program.py", "saved program.py", "memory program.py", "find program.py bytes>0", "check program.py",
    "grads program.py --steps 2", "fit program.py", "fit program.py --real", "step program.py --report step.md --force",
    "plan program.py --fit 1GiB",
)  # fmt: skip
READING = (
    "trace program.py", "saved program.py", "memory program.py", "find program.py bytes>0",
    "export program.py -o graph.dot --force", "memory program.py --iterations 2",
)  # fmt: skip
COMPUTING = (  # and say what they pass over
    "check program.py", "grads program.py", "grads program.py --steps 2", "grads program.py --format json",
    "grads program.py --steps 2 --format json", "grads program.py --timeline times.json --force",
    "step program.py --report step.md --force", "trace program.py --create-graph", "memory program.py --create-graph",
    "export program.py --gradients -o graph.dot --force", "export program.py --values -o graph.json --force",
)  # fmt: skip
MEASURING = ("fit program.py --real",)  # no tensor


@pytest.fixture(scope="module")
def device(built_device: Path) -> Iterator[DeviceRuns]:
    """Start a process for the devices."""
    with DeviceRuns(SIMULATED, built_device) as runs:
        yield runs


def ran(device: DeviceRuns, folder: Path, program: str, line: str) -> Ran:
    """Run one command on a program."""
    (folder / "program.py").write_text(program)
    (found,) = device.run(folder, [line.split()])
    assert found.code == 0, found.errors
    return found


def test_the_tree_shows_where_tensors_cross(device: DeviceRuns, tmp_path: Path) -> None:
    """The copy is a node of its own, and each tensor names its device."""
    output = ran(device, tmp_path, SPLIT, "trace program.py").output

    copy = next(line for line in output.splitlines() if "#4 ToCopyBackward0" in line)
    assert "f32[16, 64] sim:1  to sim:0" in copy
    assert "program.py:10" in copy


def test_memory_counts_each_device(device: DeviceRuns, tmp_path: Path) -> None:
    """Together they are all that is held."""
    figures = json.loads(ran(device, tmp_path, SPLIT, "memory program.py --format json").output)
    by_device = figures["extra_bytes_by_device"]

    assert {"sim:0", "sim:1"} <= by_device.keys()
    assert by_device["sim:0"] == 4 * (16 * 64 + 16 * 64)  # the input of the first layer, the output of ReLU
    assert sum(by_device.values()) == figures["extra_bytes"]


def test_the_peaks_are_those_that_the_devices_count(device: DeviceRuns, tmp_path: Path) -> None:
    """To the byte, for each."""
    plain = ran(device, tmp_path, SPLIT, f"{PLAIN} program.py")
    figures = json.loads(ran(device, tmp_path, SPLIT, "fit program.py --real --steps 2 --format json").output)
    peaks = {one["on"]: one["peak_bytes"] for one in figures["devices"]}

    assert (peaks["sim:0"], peaks["sim:1"]) == plain.peaks


def test_check_and_grads_look_at_both(device: DeviceRuns, tmp_path: Path) -> None:
    """Nothing is wrong, and every parameter has its gradient."""
    checked = ran(device, tmp_path, SPLIT, "check program.py").output
    figures = ran(device, tmp_path, SPLIT, "grads program.py").output

    assert "No problems found" in checked
    assert all(name in figures for name in ("first.weight", "first.bias", "second.weight", "second.bias"))
    assert "not measured" not in figures


@pytest.mark.parametrize("line", VERBS)
def test_a_program_that_uses_no_device_gets_nothing_there(line: str, device: DeviceRuns, tmp_path: Path) -> None:
    """Not one byte, no value read and no copy: on a GPU, the first of them would make a context."""
    found = ran(device, tmp_path, ON_CPU, line)

    assert (found.waits, found.peaks) == ((0, 0), (0, 0))


@pytest.mark.parametrize("line", [*READING, *COMPUTING, *MEASURING])
def test_nothing_of_ours_is_computed_while_kernels_are_captured(line: str, device: DeviceRuns, tmp_path: Path) -> None:
    """Each operator allocates what it returns: the program makes as many allocations as without us."""
    plain = ran(device, tmp_path, CAPTURED, f"{PLAIN} program.py").output.splitlines()
    found = ran(device, tmp_path, CAPTURED, line)
    seen = [line for line in found.output.splitlines() if line.startswith("allocations")]
    said = " ".join(f"{found.output}{found.errors}".split())

    assert found.code == 0, found.errors
    assert seen[:2] == plain[:2][: len(seen)]
    assert line in READING or len(seen) >= 2  # those stop at the first call, which they only read
    assert said.count("2 calls inside a CUDA graph capture were not looked at.") == (line in COMPUTING)


@pytest.mark.parametrize("line", ["check program.py", "overview program.py", "grads program.py --steps 2"])
def test_no_value_is_read_while_a_whole_step_is_captured(line: str, device: DeviceRuns, tmp_path: Path) -> None:
    """Neither labels nor losses nor gradients: reading one makes the capture of the program fail."""
    plain = ran(device, tmp_path, CAPTURED_STEPS, f"{PLAIN} program.py").output.splitlines()
    found = ran(device, tmp_path, CAPTURED_STEPS, line).output.splitlines()
    seen = [line for line in found if line.startswith("captured")]

    assert len(seen) >= 2
    assert seen[:2] == plain[:2]
