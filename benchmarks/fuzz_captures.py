"""Run every verb on damaged and hostile capture files: `python benchmarks/fuzz_captures.py [COUNT [FIRST [WORKERS]]]`.

What no verb may do (a traceback, a second sentence, a control character, more
time or memory than a small file deserves) is printed with the number that does it, and the exit code is then 1.
`tests/capture_mutations.py` makes the files; a shortened form of this runs with the tests.
"""

import functools
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
BATCH = 100  # files between two words about how far it is
MAX_MIB = 1500  # address space added; the files are small, and a picture's program has its own


def fuzz(numbers: Iterable[int]) -> list[str]:
    """Run all verbs on the files of some numbers, in a folder of our own."""
    import typer  # noqa: PLC0415  # in the worker, as what follows
    from capture_mutations import mutated, problems  # noqa: PLC0415

    if not hasattr(typer.main.get_command, "cache_info"):  # to describe the options took two thirds of the time
        typer.main.get_command = functools.cache(typer.main.get_command)
    os.environ["COLUMNS"] = "80"
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MAX_MIB * 1024**2, resource.getrlimit(resource.RLIMIT_AS)[1]))
    found = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number in numbers:
            found += problems(mutated(number), number)
        os.chdir("/")
    for problem in found:
        print(problem, flush=True)
    return found


def main(count: int = 10_000, first: int = 0, workers: int = os.cpu_count() or 1) -> int:
    """Fuzz on all cores, or on as many as are asked for."""
    start = time.perf_counter()
    batches = [range(begin, min(begin + BATCH, first + count)) for begin in range(first, first + count, BATCH)]
    found: list[str] = []
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:  # tells when a worker dies
        for batch, problems in zip(batches, pool.map(fuzz, batches), strict=True):
            found += problems
            print(f"{batch.stop - first:,} files, {len(found):,} problems", flush=True)
    print(f"{count:,} files, {len(found):,} problems, {time.perf_counter() - start:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
