"""Run programs that nobody here wrote, plain and under our verbs, and compare what they print and how they end.

    python benchmarks/real_programs.py LIST --folder FOLDER --python ENV/bin/python

LIST is a text file: one command line a line, as it stands after `python`, relative to FOLDER; `#` begins a comment.
real_programs.txt beside this is one, and says where its programs come from. Under `--continue` each line of stdout must
be the same but for our report, stderr but for our own lines, and the exit status. A program that differs is run plain
once more: what differs then as well, beyond times, addresses and temporary files, is no outcome to compare.

Exit code 1 if a program differs, or if one of our tracebacks was printed.
"""

import argparse
import os
import re
import resource
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

VERBS = ("trace", "check", "grads")
OURS = re.compile(r'File "[^"]*/gradinspect/[^"]*", line \d+')
NUMBERS = re.compile(r"0x[0-9a-f]+|\d+(\.\d+)?(e-?\d+)?(?= ?(s|ms|us|it/s|seconds|sec)\b)|\d\d:\d\d:\d\d|/tmp/\S+")


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    status: int | None  # None: it ran out of time
    stdout: list[str]
    stderr: list[str]
    cpu_s: float


def run(words: list[str], folder: Path, limit_s: float) -> Ended:
    """Run one command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "COLUMNS": "200"}
    try:
        done = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, timeout=limit_s, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        status, printed, said = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        status, printed, said = None, late.stdout or b"", late.stderr or b""
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Ended(status, lines_of(printed), lines_of(said), cpu_s)


def lines_of(printed: bytes) -> list[str]:
    """Split what was printed, without what is another number each time."""
    return [NUMBERS.sub("N", line) for line in printed.decode(errors="replace").splitlines()]


def without_report(lines: list[str], expected: list[str]) -> list[str]:
    """Leave out what stands in one piece between the lines that a program printed before and after it."""
    same = 0
    while same < min(len(lines), len(expected)) and lines[same] == expected[same]:
        same += 1
    after = expected[same:]
    return expected if lines[len(lines) - len(after) :] == after else lines


def compare(words: list[str], options: argparse.Namespace) -> bool:
    """Run one program in every way, print what differs, and return whether nothing does."""
    python = [options.python]
    plain = run([*python, *words], options.folder, options.limit)
    is_steady: list[bool] = []
    print(f"{shlex.join(words)}: status {plain.status}, {plain.cpu_s:.1f} CPU s")
    if plain.status not in (0, None):
        print(f"    {plain.stderr[-1:]}")
    are_same = True
    for verb in options.verb or VERBS:
        program = ["-m", "gradinspect", verb, words[0], "--continue", "--", *words[1:]]
        seen = run([*python, *program], options.folder, options.limit * 4)
        differences = differing(plain, seen, is_steady or [True] * 3, may_find=verb == "check")
        if differences and not is_steady:
            again = run([*python, *words], options.folder, options.limit)
            is_steady = [plain.stdout == again.stdout, plain.stderr == again.stderr, plain.status == again.status]
            differences = differing(plain, seen, is_steady, may_find=verb == "check")
        are_same = are_same and not differences
        times = seen.cpu_s / max(plain.cpu_s, 0.01)
        how = "differs" if differences else "the same" if all(is_steady) else "no more than between plain runs"
        print(f"  {verb}: {how}, status {seen.status}, {times:.2f} times plain")
        for difference in differences:
            print(f"    {difference}")
        if options.show == verb:
            print("\n".join(f"    | {line}" for line in seen.stdout[-options.lines :]))
        sys.stdout.flush()
    return are_same


def differing(plain: Ended, seen: Ended, is_steady: list[bool], *, may_find: bool) -> list[str]:
    """Say what differs."""
    found = []
    stdout = without_report(seen.stdout, plain.stdout)
    stderr = [line for line in seen.stderr if not line.startswith(("gradinspect: ", "USDT:"))]
    expected = [line for line in plain.stderr if not line.startswith("USDT:")]
    if is_steady[0] and stdout != plain.stdout:
        found.append(first_difference("stdout", plain.stdout, stdout))
    if is_steady[1] and stderr != expected:
        found.append(first_difference("stderr", expected, stderr))
    if is_steady[2] and seen.status not in ({0, 1} if may_find and plain.status == 0 else {plain.status}):
        found.append(f"status {seen.status}, plain {plain.status}: {seen.stderr[-1:]}")
    if OURS.search("\n".join(seen.stderr)):
        found.append("a traceback of ours")
    return found


def first_difference(what: str, expected: list[str], lines: list[str]) -> str:
    """Show the first line that differs."""
    for number, (plain, seen) in enumerate(zip(expected, lines, strict=False)):
        if plain != seen:
            return f"{what}, line {number + 1}: plain {plain[:200]!r}, seen {seen[:200]!r}"
    return f"{what}: {len(expected)} lines plain, {len(lines)} seen: {(lines + expected)[-1:]}"


def main() -> int:
    """Compare every program of the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", type=Path)
    parser.add_argument("--folder", type=Path, default=Path(), help="where the programs are")
    parser.add_argument("--python", default=sys.executable, help="has what they import, and gradinspect")
    parser.add_argument("--verb", action="append", help=f"default: {', '.join(VERBS)}")
    parser.add_argument("--limit", type=float, default=120, metavar="S", help="seconds for a plain run")
    parser.add_argument("-k", default="", metavar="REGEX", help="only lines in which it is found")
    parser.add_argument("--show", metavar="VERB", help="print the last lines of its report")
    parser.add_argument("--lines", type=int, default=12, metavar="N", help="how many of them")
    options = parser.parse_args()
    lines = [line.partition("#")[0].strip() for line in options.list.read_text().splitlines()]
    chosen = [line for line in lines if line and re.search(options.k, line)]
    same = [compare(shlex.split(line), options) for line in chosen]
    print(f"{len(same)} programs, {same.count(False)} differ")
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
