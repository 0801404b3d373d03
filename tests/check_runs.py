"""Run `gradinspect check` on many programs, each in a fork of this process, and print what happened as JSON.

Our package is imported once, which is most of what a run costs. The words of a run are those after `gradinspect`.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from fork_server import import_ours, measure_each_fork_alone

PATIENCE_S = 900  # for all runs together, on a busy machine


def check_all(runs: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Start the process, and return for each run its exit code, output and errors."""
    command = [sys.executable, __file__]
    done = subprocess.run(
        command, input=json.dumps(dict(runs)), capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def run_in_a_fork(words: Sequence[str], folder: Path) -> dict[str, Any]:
    """Run the command line once."""
    from gradinspect.cli.program import main

    out, err = folder / "out", folder / "err"
    pid = os.fork()
    if pid == 0:
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        code = 70
        try:
            code = main(list(words))
        except BaseException:  # an error of ours; this process must not go on as the one that forks
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {"code": status, "out": out.read_text(), "err": err.read_text()}


def main_loop() -> None:
    """Import everything, then run what stdin asks for."""
    import_ours()
    import_module("torch._dynamo")  # checkpointing imports it, which takes long
    gc.freeze()  # else each collection in a fork looks at all of torch's objects, and so copies their memory
    measure_each_fork_alone()
    asked = json.loads(sys.stdin.read())
    with tempfile.TemporaryDirectory() as folder:
        found = {name: run_in_a_fork(words, Path(folder)) for name, words in asked.items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main_loop()
