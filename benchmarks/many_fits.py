"""Compare `fit`, `fit --real` and the allocator on many programs: `python many_fits.py LIST --folder FOLDER`.

LIST is a text file, such as real_fits.txt: one command line a line, as it stands after `python`, relative to FOLDER.
Each program runs in copies of this process, which has imported torch and our package: the seconds of processor time are
those of the program and the tool, without imports. The allocator's peak is that of torch's profiler, its events added
up, until each optimizer has stepped twice; the program runs there without us.
"""

import argparse
import gc
import importlib
import json
import os
import re
import runpy
import shlex
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.profiler import ProfilerActivity, profile

from gradinspect.cli.running.own_imports import import_packages

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from allocator_witness import peak_in  # beside the tests

del sys.path[0]  # a program's own modules may have the names of tests

PACKAGES = ("analyses", "api", "cli", "fake", "observers", "ranks", "recording", "renderers", "runner", "storage")
NUM_STEPS = 2


class Ran(NamedTuple):
    """How a copy of this process ended."""

    printed: str
    said: str
    cpu_s: float
    status: int


def copied(work: Callable[[], None], folder: Path, limit_s: int) -> Ran:
    """Do something in a copy of this process."""
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as said:
        pid = os.fork()
        if pid == 0:
            os.setsid()
            signal.alarm(limit_s)
            os.chdir(folder)
            os.dup2(printed.fileno(), 1)
            os.dup2(said.fileno(), 2)
            os._exit(status_of(work))
        _, status, used = os.wait4(pid, 0)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        texts = [[file.seek(0), file.read()][1] for file in (printed, said)]
        return Ran(*texts, used.ru_utime + used.ru_stime, os.waitstatus_to_exitcode(status))


def status_of(work: Callable[[], None]) -> int:
    """Work, and return the exit status."""
    status = 0
    try:
        work()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except BaseException:  # as Python does at the end of a program
        traceback.print_exc()
        status = 1
    with suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    return status


class StepsEnded(BaseException):
    """Enough steps were seen."""


def allocated(words: list[str]) -> None:
    """Run a program under torch's profiler until its steps are over, and print the peak."""
    stepped = Counter[int]()

    def after_step(optimizer: torch.optim.Optimizer, _args: object, _kwargs: object) -> None:
        has_gradients = any(one.grad is not None for group in optimizer.param_groups for one in group["params"])
        stepped[id(optimizer)] += has_gradients  # a schedule may be tried out before
        if has_gradients and min(filter(None, stepped.values())) >= NUM_STEPS:
            raise StepsEnded

    register_optimizer_step_post_hook(after_step)
    sys.argv = words
    sys.path[0] = str(Path(words[0]).parent.absolute())
    gc.collect()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler, suppress(StepsEnded):
        runpy.run_path(words[0], run_name="__main__")
    print("\n" + json.dumps({"peak_bytes": peak_in(profiler)}))


def asked(verb: str, words: list[str], *options: str) -> None:
    """Run a verb of ours on a program."""
    sys.argv = ["gradinspect", verb, words[0], *options, "--quiet-script", "--format", "json", "--", *words[1:]]
    sys.path[0] = str(Path.cwd())
    runpy.run_module("gradinspect", run_name="__main__", alter_sys=True)


def found_in(ran: Ran) -> dict[str, Any]:
    """Read the JSON that a copy has printed; none if it failed."""
    starts = [match.start() for match in re.finditer(r"^\{", ran.printed, re.MULTILINE)]
    with suppress(ValueError):
        return json.loads(ran.printed[starts[-1] if starts else 0 :])
    return {}


def why_of(ran: Ran) -> str:
    """Say why there is no number."""
    if ran.status == -signal.SIGALRM:
        return f"not done when {ran.cpu_s:.0f} s of processor time were spent"
    lines = [line for line in ran.said.splitlines() if line.strip()]
    return " / ".join(lines[-2:]) or f"status {ran.status}"


def row_of(words: list[str], options: argparse.Namespace) -> str:
    """Measure one program in each way."""
    works: dict[str, Callable[[], None]] = {
        "fit": lambda: asked("fit", words),
        "real": lambda: asked("fit", words, "--real"),
        "profiler": lambda: allocated(words),
    }
    ran = {name: copied(work, options.folder, options.limit) for name, work in works.items()}
    found = {name: found_in(one) for name, one in ran.items()}
    peaks = {name: one.get("peak_bytes") for name, one in found.items()}
    times = "  ".join(f"{one.cpu_s:5.1f}" for one in ran.values())
    said = ""
    if peaks["fit"] is None:
        said = f"refused: {why_of(ran['fit'])}"
    elif peaks["profiler"] is not None:
        off = peaks["fit"] - peaks["profiler"]
        said = "exact" if not off else f"{off:+,} B ({off / peaks['profiler']:+.3%})"
    if peaks["real"] is None:
        said += f"; --real refused: {why_of(ran['real'])}"
    elif peaks["profiler"] not in (None, peaks["real"]):
        said += f"; --real {peaks['real'] - peaks['profiler']:+,} B"
    if peaks["profiler"] is None:
        said += f"; profiler: {why_of(ran['profiler'])}"
    said += "; values of a real step" if found["fit"].get("values_from") else ""
    said += "; a bound" if found["fit"].get("is_bound") else ""
    peak = peaks["profiler"] or peaks["real"] or 0
    return f"{shlex.join(words):58.58}{peak:14,}  {times}  {said}"


def import_all() -> None:
    """Import what each copy of this process needs."""
    torch.set_num_threads(1)
    import_packages(PACKAGES)
    importlib.import_module("torch._dynamo")  # which fake tensors import
    gc.collect()
    gc.freeze()


def main() -> None:
    """Print a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", type=Path)
    parser.add_argument("--folder", type=Path, default=Path(), help="where the programs are")
    parser.add_argument("--limit", type=int, default=300, metavar="S", help="seconds for each run")
    parser.add_argument("-k", default="", metavar="REGEX", help="only lines in which it is found")
    options = parser.parse_args()
    import_all()
    print(f"{'program':58}{'allocator':>14}  {'fit s':>5}  {'real':>5}  {'plain':>5}  fit against the allocator")
    for line in options.list.read_text().splitlines():
        words = shlex.split(line.partition("#")[0])
        if words and re.search(options.k, line):
            print(row_of(words, options), flush=True)


if __name__ == "__main__":
    main()
