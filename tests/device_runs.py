"""Run commands of ours on one kind of device, each in a fork of a process that has imported torch.

Each line of stdin is a folder and command lines; each line of stdout is what they printed. The CPU's process and that
of the simulated device differ in nothing else: on both, optimizers work as they do on accelerators, where the default
is `foreach`; and programs that name no device get this one: NOTE [Programs that name no device] in simulated_device.
"""

import contextlib
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from fork_server import import_ours, measure_each_fork_alone

CPU, SIMULATED = "cpu", "sim"
PLAIN = "plain"  # in place of a verb: the program is run without us
PATIENCE_S = 300.0  # for one command, on a busy machine
WIDTH = 400  # columns: the name of a device must not break a line


class Ran(NamedTuple):
    """What one command did."""

    code: int
    output: str
    errors: str
    waits: tuple[int, int] = (0, 0)  # values read from the simulated device, and copies from it to the CPU
    peaks: tuple[int, ...] = ()  # the most bytes in use on each simulated device, beyond those before


class DeviceRuns:
    """The process of one device."""

    def __init__(self, device: str, built: Path) -> None:
        """Start it."""
        self.device, self.elapsed_s = device, 0.0
        same = {**os.environ, "PYTHONHASHSEED": "0", "COLUMNS": str(WIDTH), "OMP_NUM_THREADS": "1"}
        preloaded = {"LD_PRELOAD": str(built / "default_device.so")} if device == SIMULATED else {}
        command = [sys.executable, __file__, device, str(built)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**same, **preloaded}
        )

    def __enter__(self) -> "DeviceRuns":
        """Use it."""
        return self

    def __exit__(self, *_error: object) -> None:
        """End it."""
        self.ends()

    def ends(self) -> None:
        """Let the process end."""
        with self._process:
            pass

    def run(self, folder: Path, commands: Sequence[Sequence[str]]) -> list[Ran]:
        """Run command lines in one fork, one after the other: only the last may run a program."""
        started = time.perf_counter()
        streams = self._process.stdin, self._process.stdout
        if streams[0] is None or streams[1] is None:
            raise RuntimeError("The process has no streams.")
        streams[0].write(json.dumps([str(folder), commands]) + "\n")
        streams[0].flush()
        answer = streams[1].readline()
        if not answer:
            raise RuntimeError(f"The process of {self.device} has ended.")
        self.elapsed_s += time.perf_counter() - started
        return [
            Ran(code, output, errors, (waits[0], waits[1]), tuple(peaks))
            for code, output, errors, waits, peaks in json.loads(answer)
        ]


def run_in_a_fork(folder: str, commands: Sequence[Sequence[str]], printed: Path) -> list[Ran]:
    """Run the command lines; what takes too long is killed, with all that it has started."""
    for path in printed.glob("*"):
        path.unlink()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.chdir(folder)
        run_all(commands, printed)
    status = waited_for(pid)
    return [ran_of(printed, number, status) for number in range(len(commands))]


def run_all(commands: Sequence[Sequence[str]], printed: Path) -> None:
    """Run each command line with streams of its own, and end this process."""
    from gradinspect.cli.program import main

    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, words in enumerate(commands):
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(printed / f"{number}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        code = 70
        before = witnessed()
        sys.argv = ["gradinspect", *words]
        try:
            code = ran_plainly(words[1]) if words[0] == PLAIN else main(list(words))
        except BaseException:  # an error of ours; this process must not go on as the one that forks
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):  # closed by the program
                sys.stdout.flush()
                sys.stderr.flush()
        (printed / f"{number}.code").write_text(str(code))
        after = witnessed()
        waits = [after[0][place] - before[0][place] for place in range(2)]
        (printed / f"{number}.witness").write_text(json.dumps([waits, after[1]]))
    os._exit(0)


def ran_plainly(program: str) -> int:
    """Run a program without us."""
    runpy.run_path(program, run_name="__main__")
    return 0


def witnessed() -> tuple[tuple[int, int], tuple[int, ...]]:
    """Return how often the device was waited for, and the peak of each one since the last time."""
    device = getattr(sys.modules["torch"], SIMULATED, None)
    if device is None:
        return (0, 0), ()
    counts = device.witnessed()
    peaks = tuple(device.max_memory_allocated(one) for one in range(device.device_count()))
    for one in range(device.device_count()):
        device.reset_peak_memory_stats(one)
    return (counts.values_read, counts.copies_to_host), peaks


def waited_for(pid: int) -> int:
    """Wait for a process, but not forever."""
    until = time.monotonic() + PATIENCE_S
    ended, status = 0, 0
    while not ended and time.monotonic() < until:
        time.sleep(0.005)
        ended, status = os.waitpid(pid, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # also what outlives it
    return os.waitstatus_to_exitcode(status if ended else os.waitpid(pid, 0)[1])


def ran_of(printed: Path, number: int, status: int) -> Ran:
    """Read what a command left: its own exit code, or how its process was ended."""
    texts = [printed / f"{number}.{name}" for name in ("code", "out", "err")]
    code, output, errors = (path.read_text(errors="replace") if path.exists() else "" for path in texts)
    witness = printed / f"{number}.witness"
    waits, peaks = json.loads(witness.read_text()) if witness.exists() else ((0, 0), ())
    return Ran(int(code) if code else status, output, errors, waits, peaks)


def prepare(device: str, built: Path) -> None:
    """Import all that a command may need, and choose the device."""
    optimizer: Any = import_module("torch.optim.optimizer")
    torch: Any = import_module("torch")
    if device == SIMULATED:
        simulated_device: Any = import_module("simulated_device")
        building: Any = import_module("simulated_device.building")
        simulated_device.register(building.load(built))
    else:
        on_accelerators = optimizer._get_foreach_kernels_supported_devices
        optimizer._get_foreach_kernels_supported_devices = lambda: [*on_accelerators(), CPU]
    import_module("torch._dynamo")  # checkpointing imports it, which takes long
    import_ours()
    torch.manual_seed(0)
    if device == SIMULATED:
        simulated_device.be_the_default()
    gc.collect()
    gc.freeze()  # else each collection in a fork looks at all of torch's objects, and so copies their memory
    measure_each_fork_alone()


def requests() -> Iterator[tuple[str, list[list[str]]]]:
    """Read what is asked, line by line."""
    for line in sys.stdin:
        folder, commands = json.loads(line)
        yield folder, commands


if __name__ == "__main__":
    import tempfile

    os.environ["KINETO_LOG_LEVEL"] = "99"
    prepare(sys.argv[1], Path(sys.argv[2]))
    with tempfile.TemporaryDirectory() as temporary:
        for folder, commands in requests():
            print(json.dumps(run_in_a_fork(folder, commands, Path(temporary))), flush=True)
