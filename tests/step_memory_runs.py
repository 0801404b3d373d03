"""Run programs of `step_memory_programs` that are named, each in a fork of this process, and print what was found.

Under `fit` on fake tensors, some under `fit --real`, and all as they are, for what torch's allocator reports.
"""

import gc
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from allocator_witness import peak_of
from fork_server import import_ours, measure_each_fork_alone
from step_memory_programs import MEASURED, PROGRAMS


def in_a_fork(run: Callable[[], object], output: Path) -> Any:
    """Run something in a fork, and read what it has printed."""
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        run()
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(pid, 0)
    return json.loads(output.read_text().splitlines()[-1] if output.read_text().count("\n{") else output.read_text())


def run_all(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Run some programs, each in each way."""
    from gradinspect.cli.program import main

    import_ours()
    gc.freeze()  # else each collection in a fork looks at all of torch's objects, and so copies their memory
    measure_each_fork_alone()
    found: dict[str, dict[str, Any]] = {"fake": {}, "real": {}, "allocator": {}}
    with tempfile.TemporaryDirectory() as folder:
        script, output = Path(folder) / "train.py", Path(folder) / "output"
        for name in names:
            program = PROGRAMS[name]
            script.write_text(program)
            words = ["fit", str(script), "--format", "json"]
            found["fake"][name] = in_a_fork(lambda words=words: main(words), output)  # type: ignore[misc]
            if name in MEASURED:
                real = [*words, "--real"]
                found["real"][name] = in_a_fork(lambda words=real: main(words), output)  # type: ignore[misc]
            found["allocator"][name] = in_a_fork(
                lambda program=program: print(json.dumps({"peak_bytes": peak_of(program)})),  # type: ignore[misc]
                output,
            )
    return found


if __name__ == "__main__":
    os.environ["KINETO_LOG_LEVEL"] = "99"
    import torch._dynamo  # noqa: F401  # checkpointing imports it, which takes long

    print(json.dumps(run_all(sys.argv[1:])))
