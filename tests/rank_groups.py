"""Run commands of ours on several ranks, as under torchrun, a few of them at the same time, and print JSON.

stdin has a list of `RankRun`s. A fork for each rank; the store of torchrun's agent is one of ours, on a port of its own
for each run.

NOTE [Ranks that do not end]
A fork of a process with threads, as those of the stores are, may inherit a lock that nobody releases, and a rank may
wait for one that was never scheduled. So no command runs longer than a limit: then each of its ranks leaves its stack
among its errors and is killed, and the tests of that command fail with what they need to be understood.
"""

import faulthandler
import gc
import importlib
import json
import os
import runpy
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch.distributed
from fork_server import measure_each_fork_alone

LIMIT_S = 180.0  # of one command; the slowest takes 20 s on an idle machine
STACK_S = 2.0  # to write one
AT_ONCE = 4  # commands; a busy machine must not look like a rank that hangs


def run_rank(run: dict[str, Any], rank: int, port: int, output: int, errors: int) -> int:
    """Start one rank, and return its process."""
    pid = os.fork()
    if pid:
        return pid
    os.dup2(output, 1)
    os.dup2(errors, 2)
    faulthandler.register(signal.SIGUSR1, file=2)  # NOTE [Ranks that do not end]
    os.chdir(run["folder"])
    num_ranks = str(run["num_ranks"])
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": num_ranks, "LOCAL_WORLD_SIZE": num_ranks,
        "MASTER_ADDR": "localhost", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True",
        "TORCHELASTIC_RUN_ID": str(port), "OMP_NUM_THREADS": "1", "COLUMNS": "80", "TMPDIR": run["folder"],
        **run["environment"],
    }  # fmt: skip
    os.environ.update({name: value.replace("{rank}", str(rank)) for name, value in run["environment"].items()})
    tempfile.tempdir = None
    sys.argv = ["gradinspect", *run["words"]]
    code: object = 0
    try:
        runpy.run_module("gradinspect", run_name="__main__", alter_sys=True)
    except SystemExit as ending:
        code = ending.code
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)  # an exit would join threads that were not forked


def end_late(processes: list[int]) -> None:
    """Kill what does not end, with its stacks: NOTE [Ranks that do not end]."""
    for number, patience in ((signal.SIGUSR1, STACK_S), (signal.SIGKILL, 0.0)):
        for pid in processes:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        time.sleep(patience if processes else 0.0)


def read(file: Any) -> str:
    """Read what a process has written."""
    return Path(file.name).read_text()


def run_all(runs: list[dict[str, Any]], folder: Path) -> list[list[tuple[int, str, str]]]:
    """Run all, some at the same time; return for each rank of each its exit code, output and errors."""
    waiting = dict(enumerate(runs))
    alive: dict[int, tuple[int, int]] = {}  # process -> its run and rank
    began: dict[int, float] = {}
    codes: dict[tuple[int, int], int] = {}
    stores, files = [], {}
    while waiting or alive:
        while waiting and len({number for number, _ in alive.values()}) < AT_ONCE:
            number = min(waiting)
            run, began[number] = waiting.pop(number), time.monotonic()
            stores.append(
                torch.distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False, use_libuv=False)
            )
            for rank in range(run["num_ranks"]):
                out, err = files[number, rank] = [(folder / f"{number}.{rank}.{kind}").open("w")
                                                  for kind in ("out", "err")]  # fmt: skip
                alive[run_rank(run, rank, stores[-1].port, out.fileno(), err.fileno())] = number, rank
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            codes[alive.pop(pid)] = os.waitstatus_to_exitcode(status)
        else:
            time.sleep(0.02)
            end_late([one for one, (number, _) in alive.items() if time.monotonic() - began[number] > LIMIT_S])
    ended = {place: (codes[place], read(out), read(err)) for place, (out, err) in files.items()}
    return [[ended[number, rank] for rank in range(run["num_ranks"])] for number, run in enumerate(runs)]


if __name__ == "__main__":
    for slow in ("torch._dynamo", "typer.main", "torch.nn.parallel", "gradinspect.cli.running.pipeline"):
        importlib.import_module(slow)
    gc.freeze()  # else each collection in a fork looks at all of torch's objects, and so copies their memory
    measure_each_fork_alone()
    asked = json.load(sys.stdin)
    folder = tempfile.mkdtemp()  # a TemporaryDirectory would be removed by the exit handlers of a fork
    print(json.dumps(run_all(asked, Path(folder))))
    shutil.rmtree(folder)
