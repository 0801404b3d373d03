"""Time every verb on very large graphs: `python benchmarks/large.py deep 300000 trace saved --limit 300`.

Shapes: `deep` is a chain, as deep as it is long; `wide` has one node with so many inputs. Prints for each verb its exit
status, the seconds that passed, the processor time, and the most memory that was used. Without verbs, all are run.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

VERBS = {
    "trace": "trace {program}",
    "saved": "saved {program}",
    "memory": "memory {program}",
    "grads": "grads {program}",
    "check": "check --steps 1 {program}",
    "step": "step {program} --report {folder}/steps.html",
    "find": "find {program} class=SumBackward0",
    "json": "export {program} -o {folder}/run.json",
    "csv": "export {program} -o {folder}/run.csv",
    "html": "export {program} -o {folder}/run.html",
    "svg": "export {program} -o {folder}/run.svg",
    "fit": "fit {program}",
}


def build(shape: str, number: int) -> None:
    """Run the program itself."""
    weight = torch.ones(4, requires_grad=True)
    if shape == "wide":
        torch.stack([weight * 1.0 for _ in range(number)]).sum().backward()
        return
    hidden = weight
    for _ in range(number):
        hidden = hidden * 1.0
    hidden.sum().backward()


def measure(verb: str, shape: str, number: int, limit_s: int) -> str:
    """Run one verb, and say how it ended and what it took."""
    with tempfile.TemporaryDirectory() as folder:
        words = VERBS[verb].format(program=__file__, folder=folder).split()
        command = [sys.executable, "-m", "gradinspect", *words, "--", "--program", shape, str(number)]
        with (Path(folder) / "said").open("w+") as said:
            start = time.monotonic()
            process = subprocess.Popen(command, stdout=said, stderr=said)
            ended: list[tuple[int, int]] = []
            while not ended or not ended[0][0]:
                pid, status, used = os.wait4(process.pid, os.WNOHANG)
                ended = [(pid, status)]
                if not pid and time.monotonic() - start > limit_s:
                    process.kill()
                    os.wait4(process.pid, 0)
                    return f"{verb:8} not done after {limit_s} s"
                time.sleep(0.05)
            seconds = time.monotonic() - start
            process.returncode = os.waitstatus_to_exitcode(ended[0][1])
            said.seek(0)
            last = (said.read().strip().splitlines() or [""])[-1] if process.returncode else ""
    cpu_s = used.ru_utime + used.ru_stime
    peak = used.ru_maxrss / 1024**2
    return f"{verb:8} exit {process.returncode}  {seconds:7.1f} s  {cpu_s:7.1f} CPU s  {peak:6.2f} GiB  {last}"


def main() -> None:
    """Print a line for each verb."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shape", choices=("deep", "wide"))
    parser.add_argument("number", type=int, help="nodes of the chain, or inputs of the node")
    parser.add_argument("verbs", nargs="*", help=f"of {', '.join(VERBS)}")
    parser.add_argument("--limit", type=int, default=600, metavar="S", help="seconds for each verb")
    parser.add_argument("--program", action="store_true", help="be the program that is inspected")
    options = parser.parse_args()
    if options.program:
        build(options.shape, options.number)
        return
    for verb in options.verbs or VERBS:
        print(measure(verb, options.shape, options.number, options.limit), flush=True)


if __name__ == "__main__":
    main()
