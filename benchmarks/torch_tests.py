"""Run torch's own tests plain and under our verbs, and compare how every test ends.

    python benchmarks/torch_tests.py FOLDER/test/test_autograd.py FOLDER/test/functorch/test_vmap.py \
        --verb "check --continue" -k TestAutograd --shard 1/4

FOLDER is a checkout of pytorch's sources; its tests need not be those of the torch that is installed: what counts is
that a test ends as it does without us, with the same error if it fails. `--python` names another environment's Python.

Each test runs in a process of its own, so that it is the program whose first backward call is captured. `--together`
runs those of a file in one process, in which all but the first come after the capture. Tests that end differently are
run again, twice plain and twice under the verb: what does not end the same way each time is told apart as unsteady. A
run that is stopped has lost nothing: with `--keep FOLDER` the outcomes lie there, and plain ones are taken from there.

Exit code 1 if a test ends differently, if one of our tracebacks was printed, or if a file could not be run.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SERVER = Path(__file__).parent / "torch_test_server.py"
VERBS = ["trace --continue", "check --continue", "grads --continue", "memory --iterations 3 --continue"]
VARYING = (
    (re.compile(r"0x[0-9a-f]{6,}"), "0x"),
    (re.compile(r"/tmp/[\w./-]+"), "/tmp"),  # what tests print
    (re.compile(r"\d+\.\d+ ?(ms|s|us)\b"), "TIME"),
)


@dataclass
class Outcomes:
    """How the tests of one file ended in one way of running them."""

    by_test: dict[str, str] = field(default_factory=dict)
    ours: dict[str, str] = field(default_factory=dict)  # what a test printed that has a traceback of ours in it
    cpu_s: float = 0.0

    @classmethod
    def read(cls, path: Path) -> "Outcomes":
        """Read what the server has written so far."""
        found = cls()
        for line in path.read_text().splitlines():
            group = json.loads(line)
            found.cpu_s += group["cpu_s"]
            for test, outcome in group["outcomes"].items():
                found.by_test[test] = "said nothing" if outcome is None else steady(outcome)
                if group["ours"]:
                    found.ours[test] = group["ours"]
        return found


def steady(outcome: str) -> str:
    """Leave out of an outcome what differs from run to run: addresses, temporary files, times."""
    for pattern, word in VARYING:
        outcome = pattern.sub(word, outcome)
    return outcome


class Runs:
    """Runs one test file in different ways."""

    def __init__(self, file: Path, options: argparse.Namespace, folder: Path) -> None:
        """Keep what was asked for; outcomes go to the folder."""
        self._file, self._options, self._folder = file, options, folder
        self.num_failed = 0  # runs of the file that did not get to their end

    def run(self, words: str, *, tests: list[str] | None = None, again: int = 0) -> Outcomes:
        """Run tests, all that were asked for or some of them again."""
        options = self._options
        name = "-".join([self._file.parent.name, self._file.stem, options.shard.replace("/", "of"), *words.split()])
        out = self._folder / f"{name}{f'.{again}' if again else ''}.jsonl"
        job: dict[str, Any] = {
            "file": str(self._file), "words": words.split(), "match": options.k or "", "tests": tests,
            "shard": [int(part) for part in options.shard.split("/")], "limit_s": options.limit, "out": str(out),
            "together": options.together and not again,
        }  # fmt: skip
        if not (options.keep and not words and not again and out.exists()):
            self._serve(job, out)
        return Outcomes.read(out)

    def _serve(self, job: dict[str, Any], out: Path) -> None:
        out.write_text("")
        path = out.with_suffix(".job.json")
        path.write_text(json.dumps(job))
        said = out.with_suffix(".log")
        command = [self._options.python, str(SERVER), str(path)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        with said.open("w") as log:
            try:
                subprocess.run(
                    command, check=True, timeout=self._options.file_limit, env=environment, stdin=subprocess.DEVNULL,
                    stdout=log, stderr=log,
                )  # fmt: skip
            except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
                self.num_failed += 1
                print(f"  {error}\n{said.read_text()[-2000:]}", flush=True)


def compare(runs: Runs, plain: Outcomes, words: str, shown: int) -> int:
    """Run under a verb, print what differs, and return how many tests do."""
    found = runs.run(words)
    differing = [test for test, outcome in found.by_test.items() if plain.by_test.get(test) != outcome]
    missing = sorted(plain.by_test.keys() - found.by_test.keys())
    truly = confirmed(runs, plain, words, differing) if differing else {}
    print(
        f"  {words}: {len(found.by_test)} tests, {len(truly)} differ, {len(differing) - len(truly)} unsteady, "
        f"{len(missing)} not run, {len(found.ours)} with a traceback of ours; "
        f"{found.cpu_s:.0f} CPU s, {found.cpu_s / (plain.cpu_s or 1):.2f} times plain",
        flush=True,
    )
    for test, (usual, ours) in truly.items():
        print(f"    {test}\n      plain: {usual[:shown]}\n      {words}: {ours[:shown]}")
    by_error: dict[str, list[str]] = {}
    for test, text in found.ours.items():
        by_error.setdefault(text.strip().rpartition("\n")[2], []).append(test)
    for error, tests in by_error.items():
        print(f"    {error[:shown]}: printed by {len(tests)}, as {tests[0]}:\n{found.ours[tests[0]][-shown * 4 :]}")
    return len(truly) + len(missing) + len(found.ours)


def confirmed(runs: Runs, plain: Outcomes, words: str, tests: list[str]) -> dict[str, tuple[str, str]]:
    """Run tests again, and return those that differ every time: how they end plain, and how under the verb."""
    plainly = [plain, *(runs.run("", tests=tests, again=number) for number in (1, 2))]
    verbally = [runs.run(words, tests=tests, again=number) for number in (1, 2)]
    differing = {}
    for test in tests:
        usual = {outcomes.by_test.get(test, "not run") for outcomes in plainly}
        ours = {outcomes.by_test.get(test, "not run") for outcomes in verbally}
        if len(usual) == 1 and not usual & ours:
            differing[test] = (usual.pop(), min(ours))
    return differing


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="test files")
    parser.add_argument("--verb", action="append", metavar="WORDS", help=f"default: {VERBS}")
    parser.add_argument("--python", default=sys.executable, help="the Python of another environment")
    parser.add_argument("-k", metavar="REGEX", help="only tests whose name it is found in")
    parser.add_argument("--shard", default="1/1", metavar="N/M", help="one part of the tests")
    parser.add_argument("--together", action="store_true", help="the tests of a file in one process")
    parser.add_argument("--limit", type=float, default=60, metavar="S", help="seconds for a test")
    parser.add_argument("--file-limit", type=float, default=3600, metavar="S", help="seconds for a file, in each way")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep outcomes there, and take plain ones from it")
    parser.add_argument("--shown", type=int, default=400, metavar="N", help="characters of each error to print")
    return parser.parse_args()


def main() -> int:
    """Compare."""
    options = parse()
    differing = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.keep or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        for file in options.files:
            runs = Runs(file.absolute(), options, folder)
            plain = runs.run("")
            kinds = [outcome.split(":")[0] for outcome in plain.by_test.values()]
            counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
            print(f"{file.name}: plain: {counts}; {plain.cpu_s:.0f} CPU s", flush=True)
            if not plain.by_test:
                print("  no test ran: is the file's name right, does it import, does -k match?", flush=True)
                differing += 1
                continue
            differing += sum(compare(runs, plain, words, options.shown) for words in options.verb or VERBS)
            differing += runs.num_failed
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
