"""How often each verb waits for a device, and how much memory it uses there: counted by the simulated device itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from device_runs import PLAIN, SIMULATED, DeviceRuns, Ran

pytestmark = pytest.mark.slow

# Nothing is read by the programs themselves, so what is read is read by us; each line printed is an engine call.
TRAIN = """\
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(6):
    x = torch.randn(8, 64)
    loss = model(x).square().mean()
    print("call", flush=True)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
PENALTY = """\
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1, bias=False))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(6):
    x = torch.randn(8, 64, requires_grad=True)
    print("call", flush=True)
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    loss = (slope.norm(dim=1) - 1).square().mean()
    print("call", flush=True)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
ACCUMULATION = """\
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 4))
model[0].weight.register_hook(lambda gradient: gradient * 0.5)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
for step in range(4):
    optimizer.zero_grad()
    for part in range(2):
        loss = model(torch.randn(8, 64)).square().mean() / 2
        print("call", flush=True)
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
"""
PROGRAMS = {"train": TRAIN, "penalty": PENALTY, "accumulation": ACCUMULATION}
SILENT = (
    "trace program.py", "trace program.py --full -o graph.json --force", "saved program.py", "memory program.py",
    "find program.py bytes>0", "export program.py -o graph.dot --force", "fit program.py --real",
    "fit program.py", "plan program.py --fit 1GiB",
)  # fmt: skip
# The command, how often it fetches for a call, and in how many steps of the optimizer it measures what they change.
# What `diff` and `explore` run, in processes of their own, is what `trace` and `export --values` run; `step` shows
# values, so that it waits at each node.
WAITING = {
    "check program.py": (1, 0),
    "overview program.py": (1, 0),
    "grads program.py": (1, 1),
    "grads program.py --steps 2": (1, 2),
    "export program.py -o graph.json --force --values": (2, 0),  # what forward has made, and what backward makes
}  # fmt: skip
NUM_PARAMETERS = {"train": 4, "penalty": 3, "accumulation": 6}


@pytest.fixture(scope="module")
def device(built_device: Path) -> Iterator[DeviceRuns]:
    """Start a process for the device."""
    with DeviceRuns(SIMULATED, built_device) as runs:
        yield runs


def ran(device: DeviceRuns, folder: Path, program: str, line: str) -> Ran:
    """Run one command on a program."""
    (folder / "program.py").write_text(program)
    (found,) = device.run(folder, [line.split()])
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_programs_themselves_read_nothing(name: str, device: DeviceRuns, tmp_path: Path) -> None:
    """So that what is counted is ours."""
    plain = ran(device, tmp_path, PROGRAMS[name], f"{PLAIN} program.py")

    assert (plain.code, plain.waits) == (0, (0, 0)), plain.errors
    assert "call" in plain.output


@pytest.mark.parametrize("line", SILENT)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_reads_no_values_waits_for_nothing(name: str, line: str, device: DeviceRuns, tmp_path: Path) -> None:
    """Neither a value nor a copy is fetched."""
    found = ran(device, tmp_path, PROGRAMS[name], line)

    assert (found.code, found.waits) == (0, (0, 0)), found.errors


@pytest.mark.parametrize("line", WAITING)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_fetched_once_for_each_call(name: str, line: str, device: DeviceRuns, tmp_path: Path) -> None:
    """Together, after the engine has run; before a step also each weight, of which no copy may stay on the device."""
    found = ran(device, tmp_path, PROGRAMS[name], line)

    num_calls = found.output.splitlines().count("call")
    times, num_steps = WAITING[line]
    num_of_steps = num_steps * (NUM_PARAMETERS[name] + 1)
    assert found.code == 0, found.errors
    assert found.waits[0] == 0
    assert 0 < found.waits[1] <= times * num_calls + num_of_steps


def test_a_loss_that_is_not_finite_is_explained_by_the_same_fetch(device: DeviceRuns, tmp_path: Path) -> None:
    """By the line that made the first such value, which is gone when the loss is known."""
    program = TRAIN.replace("model(x).square().mean()", "(model(x) - 5).log().tanh().mean()")
    found = ran(device, tmp_path, program, "check program.py")
    num_calls = found.output.splitlines().count("call")

    assert "GI502" in found.output, found.errors
    assert "sim:0 with NaN, made by Tanh" in " ".join(found.output.split())
    assert found.waits[0] == 0
    assert found.waits[1] <= num_calls


STEPS = """
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(6):
    loss = model(torch.randn(2, model[0].in_features)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
MODELS = {  # and the elements of its weights
    "two layers": ("nn.Linear(3000, 6000), nn.Linear(6000, 1200)", 3000 * 6000 + 6000 + 6000 * 1200 + 1200),
    "one layer": ("nn.Linear(2000, 1000)", 2000 * 1000 + 1000),
    "a small one": ("nn.Linear(400, 400)", 400 * 400 + 400),
}
LEAST = (1 << 16) + 4096  # bytes: a piece of a small model, and figures


@pytest.mark.parametrize("name", MODELS)
def test_little_room_is_needed_on_the_device(name: str, device: DeviceRuns, tmp_path: Path) -> None:
    """At most a hundredth of the weights, or some 64 KiB, beside what the program itself has there at its peak."""
    layers, num_elements = MODELS[name]
    program = f"import torch\nfrom torch import nn\ntorch.manual_seed(0)\nmodel = nn.Sequential({layers}){STEPS}"
    plain = ran(device, tmp_path, program, f"{PLAIN} program.py")
    found = [ran(device, tmp_path, program, line) for line in ("check program.py", "grads program.py --steps 2")]

    assert [one.code for one in (plain, *found)] == [0, 0, 0]
    assert plain.peaks[0] > 2 * 4 * num_elements  # with the gradients
    assert all(one.peaks[0] - plain.peaks[0] <= max(4 * num_elements // 100, LEAST) for one in found)
