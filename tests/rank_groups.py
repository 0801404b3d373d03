"""Run commands of ours on several ranks, as under torchrun, all of them at the same time, and print JSON.

stdin has a list of `RankRun`s. A fork for each rank; the store of torchrun's agent is one of ours, on a port of its own
for each run.
"""

import gc
import importlib
import json
import os
import runpy
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import torch.distributed


def run_rank(run: dict[str, Any], rank: int, port: int, output: int, errors: int) -> int:
    """Start one rank, and return its process."""
    pid = os.fork()
    if pid:
        return pid
    os.dup2(output, 1)
    os.dup2(errors, 2)
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


def end_of(pid: int) -> int:
    """Wait for a process, and return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def read(file: Any) -> str:
    """Read what a process has written."""
    return Path(file.name).read_text()


if __name__ == "__main__":
    for slow in ("torch._dynamo", "typer.main", "torch.nn.parallel", "gradinspect.cli.running.reporting"):
        importlib.import_module(slow)
    gc.freeze()  # else each collection in a fork looks at all of torch's objects, and so copies their memory
    runs = json.load(sys.stdin)
    folder = tempfile.mkdtemp()  # a TemporaryDirectory would be removed by the exit handlers of a fork
    started, stores = [], []
    for number, run in enumerate(runs):
        stores.append(
            torch.distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False, use_libuv=False)
        )
        files = [[(Path(folder) / f"{number}.{rank}.{kind}").open("w") for kind in ("out", "err")]
                 for rank in range(run["num_ranks"])]  # fmt: skip
        pids = [run_rank(run, rank, stores[-1].port, out.fileno(), err.fileno())
                for rank, (out, err) in enumerate(files)]  # fmt: skip
        started.append((pids, files))
    codes: dict[int, int] = {}
    waiting = [threading.Thread(target=lambda pid=pid: codes.update({pid: end_of(pid)}))
               for pids, _ in started for pid in pids]  # fmt: skip
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join()
    print(json.dumps([[(codes[pid], read(out), read(err)) for pid, (out, err) in zip(pids, files, strict=True)]
                      for pids, files in started]))  # fmt: skip
    shutil.rmtree(folder)
