"""Run `gradinspect check` on programs as two ranks that share a store, as under torchrun, and print JSON.

A fork for each rank; the store of torchrun's agent is one of ours, on a port of its own for each program.
"""

import gc
import importlib
import json
import os
import runpy
import sys
import tempfile
from pathlib import Path

import torch.distributed

RANKS = 2


def run_rank(rank: int, port: int, program: str, output: int) -> int:
    """Start one rank, and return its process."""
    pid = os.fork()
    if pid:
        return pid
    os.dup2(output, 1)
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": str(RANKS),
        "MASTER_ADDR": "localhost", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True",
        "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    sys.argv = ["gradinspect", "check", program, "--format", "json"]
    code: object = 0
    try:
        runpy.run_module("gradinspect", run_name="__main__", alter_sys=True)
    except SystemExit as ending:
        code = ending.code
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 1)  # an exit would join threads that were not forked


def run_pair(program: str) -> list[tuple[int, str]]:
    """Run a program; return exit code and output of each rank."""
    store = torch.distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    with tempfile.TemporaryDirectory() as folder:
        outputs = [(Path(folder) / str(rank)).open("w+") for rank in range(RANKS)]
        pids = [run_rank(rank, store.port, program, outputs[rank].fileno()) for rank in range(RANKS)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        return [(code, Path(output.name).read_text()) for code, output in zip(codes, outputs, strict=True)]


if __name__ == "__main__":
    for slow in ("torch._dynamo", "typer.main"):
        importlib.import_module(slow)
    gc.freeze()  # else each collection in a fork looks at all of torch's objects, and so copies their memory
    print(json.dumps({program: run_pair(program) for program in sys.argv[1:]}))
