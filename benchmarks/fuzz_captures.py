"""Run every verb on damaged and hostile capture files: `python benchmarks/fuzz_captures.py [COUNT [FIRST]]`.

Each core takes every so-many-th number. What no verb may do (a traceback, a second sentence, a control character, more
time or memory than a small file deserves) is printed with the number that does it, and the exit code is then 1.
`tests/capture_mutations.py` makes the files; a shortened form of this runs with the tests.
"""

import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
MAX_MIB = 1500  # address space added; the files are small, and a picture's program has its own


def fuzz(numbers: Iterable[int]) -> list[str]:
    """Run all verbs on the files of some numbers, in a folder of our own."""
    from capture_mutations import mutated, problems  # noqa: PLC0415  # in the worker

    os.environ["COLUMNS"] = "80"
    os.chdir(tempfile.mkdtemp(prefix="fuzz-captures-"))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = used + MAX_MIB * 1024**2
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    found = []
    for number in numbers:
        for problem in problems(mutated(number), number):
            print(problem, flush=True)
            found.append(problem)
    return found


def main(count: int = 10_000, first: int = 0) -> int:
    """Fuzz on all cores."""
    start = time.perf_counter()
    workers = os.cpu_count() or 1
    batches = [range(first + worker, first + count, workers) for worker in range(workers)]
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        found = [problem for problems in pool.map(fuzz, batches, chunksize=1) for problem in problems]
    print(f"{count:,} files, {len(found):,} problems, {time.perf_counter() - start:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
