"""What we say of a program on a device is what we say of it on the CPU. The device is built here, by a C++ compiler.

NOTE [Where there is no compiler]
The tests are skipped, and say so at the end of the run; `.ci/run` prints a line of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from device_comparison import VERBS, Comparison, compare
from device_differences import ALLOWED
from device_programs import NOT_RUN, programs, written_for
from simulated_device import building

# Double backward, a checkpoint, two models, numbers, an in-place write, a finding, gradients of gradients, dropout.
ALWAYS = [
    "samples/double_backward",
    "samples/checkpointed",
    "samples/checkpointed_reentrant",
    "samples/gan",
    "samples/operators",
    "broken/inplace_relu",
    "broken/cut_detach",
    "clean/wgan_gp_critic",
    "step_memory/SGD",
]
FAMILIES = sorted({name.partition("/")[0] for name in programs()})


def in_words(comparison: Comparison) -> str:
    """Say what differs without a reason."""
    return "\n\n".join(f"{one.program}, {one.verb}:\n" + "\n".join(one.left[:20]) for one in comparison.not_allowed)


@pytest.mark.slow
def test_some_programs_are_the_same_on_a_device(built_device: Path, tmp_path: Path) -> None:
    """Under each verb, and in the capture file; the sweep runs all programs."""
    comparison = compare(ALWAYS, tmp_path, built_device)

    assert in_words(comparison) == ""
    assert len(comparison.compared) >= 11 * len(ALWAYS)
    assert comparison.not_needed == []


@pytest.mark.sweep
@pytest.mark.parametrize("family", FAMILIES)
def test_all_programs_are_the_same_on_a_device(family: str, built_device: Path, tmp_path: Path) -> None:
    """But for operators that differ there, each with its reason."""
    comparison = compare([name for name in programs() if name.startswith(f"{family}/")], tmp_path, built_device)

    assert in_words(comparison) == ""
    assert comparison.not_needed == []
    assert comparison.compared


PROBE = """
import json, sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import torch
import simulated_device
from simulated_device import building
simulated_device.register(building.load(Path(sys.argv[1])))
simulated_device.be_the_default()
sim = torch.sim
found = {"other": sim.memory_allocated(1)}
x = torch.randn(3, 4, requires_grad=True)
found["allocated"] = sim.memory_allocated()
threads = []
x.register_hook(lambda gradient: threads.append(threading.get_ident()))
before = sim.witnessed()
x.exp().sum().backward()
after = sim.witnessed()
found["syncs"] = [getattr(after, name) - getattr(before, name) for name in vars(after)]
found["own thread"] = threads != [threading.get_ident()]
sim.reset_peak_memory_stats()
found["peak"] = sim.max_memory_allocated() - sim.memory_allocated()
float(x.sum()), x.tolist(), torch.from_numpy(__import__("numpy").ones(2)).to("sim")
found["reads"] = [getattr(sim.witnessed(), name) - getattr(after, name) for name in vars(after)]
found["second device"] = str(torch.ones(2, device="sim:1").device)
found["pinned"] = torch.ones(2, device="cpu").pin_memory().is_pinned()
made = {}
worker = threading.Thread(target=lambda: made.update(device=str(torch.zeros(1).device)))
worker.start(); worker.join()
found["in a thread"] = made["device"]
print(json.dumps(found))
"""


@pytest.mark.slow
def test_the_device_is_one(built_device: Path) -> None:
    """It has memory of its own, an engine thread of its own, and counts what waits for it."""
    environment = {**os.environ, "LD_PRELOAD": str(built_device / building.PRELOADED)}
    words = [sys.executable, "-c", PROBE, str(built_device), str(Path(__file__).parent)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    found = json.loads(done.stdout or repr(done.stderr))

    assert found == {
        "other": 0,
        "allocated": 48,  # of x: 12 elements
        "syncs": [0, 0, 0],
        "own thread": True,
        "peak": 0,
        "reads": [1, 1, 1],
        "second device": "sim:1",
        "pinned": True,
        "in a thread": "sim:0",
    }


ENGINE = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import torch
if sys.argv[1]:
    import simulated_device
    from simulated_device import building
    simulated_device.register(building.load(Path(sys.argv[1])))
device = "sim" if sys.argv[1] else "cpu"
x = torch.ones(2, device=device, requires_grad=True)
for _ in range(50):
    x.exp()  # so that numbers of this thread are higher than those of a device's
ran = []
before = x.sin()
(made,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
named = {"made by the program": before.grad_fn, "made by backward": made.grad_fn}
for name, node in named.items():
    node.register_prehook(lambda _gradients, name=name: ran.append(name))
(before.sum() + made.sum()).backward()
print(json.dumps([ran, {name: node._sequence_nr() for name, node in named.items()}]))
"""


@pytest.mark.slow
def test_the_engine_runs_the_highest_number_of_any_thread_first(built_device: Path) -> None:
    """So nodes that a backward made run before older ones on the CPU, and after them on a device."""
    found = {}
    for device, folder in (("cpu", ""), ("sim", str(built_device))):
        words = [sys.executable, "-c", ENGINE, folder, str(Path(__file__).parent)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        ran, numbers = json.loads(done.stdout or repr(done.stderr))
        assert ran == sorted(numbers, key=numbers.__getitem__, reverse=True)
        found[device] = ran

    assert found == {
        "cpu": ["made by backward", "made by the program"],
        "sim": ["made by the program", "made by backward"],
    }


def test_a_program_keeps_its_lines() -> None:
    """What is written for a device differs in the names of devices and in copies for NumPy only."""
    text = "a = x.numpy()\nwith autocast('cpu'):\n    pass\n"

    assert written_for(text, "sim") == "a = x.cpu().numpy()\nwith autocast('sim'):\n    pass\n"


def test_a_program_that_is_not_run_has_a_reason() -> None:
    """And it exists, under the name that is given."""
    assert not set(NOT_RUN) & set(programs())
    assert all(NOT_RUN.values())
    assert len(programs()) > 450


def test_each_entry_is_about_the_program_that_needs_it() -> None:
    """Under at least one verb; whether it needs it is seen where it runs."""
    for entry in ALLOWED:
        assert any(entry.is_about(programs()[entry.witness], verb) for verb in VERBS), entry


def test_nothing_is_built_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason names what to install."""
    monkeypatch.setattr(building, "shutil", SimpleNamespace(which=lambda _name: None))

    assert "apt-get install g++" in str(building.missing())
