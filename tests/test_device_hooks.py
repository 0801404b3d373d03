"""Nodes that hooks and custom Functions make on a device's thread have the line and module that they have on the CPU.

There one thread makes all nodes, and its numbers say all: the record must be equal, apart from devices and threads.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from described_graphs import described
from device_hook_programs import PROGRAMS, on_devices
from device_runs import CPU, SIMULATED, DeviceRuns, Ran
from device_said import printed

from gradinspect.graph import Graph
from gradinspect.storage.decoding import decode_graph

pytestmark = pytest.mark.slow

COPY = "ToCopyBackward0"  # from one device to another: on the CPU there is nothing to do


@pytest.fixture(scope="module")
def devices(built_device: Path) -> Iterator[dict[str, DeviceRuns]]:
    """Start a process for the CPU, and one for the device."""
    with ExitStack() as running:
        yield {name: running.enter_context(DeviceRuns(name, built_device)) for name in (CPU, SIMULATED)}


def ran_on(runs: DeviceRuns, folder: Path, program: str, *words: str) -> Ran:
    """Run one command on a program."""
    folder = folder / runs.device
    folder.mkdir(exist_ok=True)
    names = (CPU, CPU) if runs.device == CPU else (f"{SIMULATED}:0", f"{SIMULATED}:1")
    (folder / "program.py").write_text(on_devices(PROGRAMS[program], *names))
    (ran,) = runs.run(folder, [words])
    return ran


def captured(runs: DeviceRuns, folder: Path, program: str, backward: int) -> Graph:
    """Record a backward call."""
    words = ("trace", "program.py", "--backward", str(backward), "-o", "graph.json", "--force")
    ran = ran_on(runs, folder, program, *words)
    assert ran.code == 0, ran.errors
    return decode_graph((folder / runs.device / "graph.json").read_bytes(), "graph.json")


@pytest.mark.parametrize("program", PROGRAMS)
def test_lines_and_modules_are_those_of_the_cpu(program: str, devices: dict[str, DeviceRuns], tmp_path: Path) -> None:
    """In the second call, with what hooks made in the first one, and in the third."""
    for backward in (2, 3):
        expected, found = (captured(runs, tmp_path, program, backward) for runs in devices.values())

        assert described(found, without=COPY) == described(expected, without=COPY)
        assert found.warnings == ()
        assert {node.thread for node in expected.nodes} == {0}
        assert {node.thread for node in found.nodes} > {0}


# A copy of the process cannot use the device, so that custom Functions on one are verified only where it is asked for.
_VERIFIED = re.compile(
    r"(custom Functions?) (?:not verified|verified in a few directions only)|: (?:--gradcheck does|forward is a step).*"
)


@pytest.mark.parametrize("program", PROGRAMS)
def test_check_says_what_it_says_on_the_cpu(program: str, devices: dict[str, DeviceRuns], tmp_path: Path) -> None:
    """Findings are about lines, and about what was freed or modified."""
    expected, found = (
        _VERIFIED.sub(r"\1", printed(ran_on(runs, tmp_path, program, "check", "program.py"), tmp_path / runs.device))
        for runs in devices.values()
    )

    assert found == expected
