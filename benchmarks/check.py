"""How good `gradinspect check` is, and what it costs: `python benchmarks/check.py`.

Precision and recall are taken over the programs of tests/check_programs: each finding that a program declares counts as
found if its code and all its lines are there, and each that it does not declare counts as false. The cost is the CPU
time of a training step, every step watched, beside that of the same script run by itself, in turns.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from check_expectations import declared_findings, options_of  # noqa: E402  # from the tests
from ranked import RankRun, on_ranks  # noqa: E402
from runs import gradinspect  # noqa: E402

PROGRAMS = ROOT / "tests" / "check_programs"
TRAIN = Path(__file__).parent / "train.py"
REPEATS = 3


class Program(NamedTuple):
    """One program of train.py."""

    name: str
    num_steps: int
    num_skipped: int  # of its first steps, in which torch warms up


PROGRAMS_TO_TIME = (Program("transformer", 6, 1), Program("small_operators", 6, 1), Program("ctc", 6, 1))
NUM_LEFT = 2  # steps that are watched before the program is left alone, and one more until it is left


def found_in(output: str) -> list[tuple[str, set[str]]]:
    """Return code and lines of each finding in what `--format json` printed."""
    return [
        (finding["code"], {f"{place['role']}={place['line']}" for place in finding["places"]})
        for finding in json.loads(output)["findings"]
    ]


def judge(declared: list[tuple[str, set[str]]], found: list[tuple[str, set[str]]]) -> Counter[tuple[str, str]]:
    """Count what is right, false and missed, by code."""
    counts: Counter[tuple[str, str]] = Counter()
    left = list(found)
    for code, lines in declared:
        match = next((one for one in left if one[0] == code and lines <= one[1]), None)
        counts[code, "missed" if match is None else "right"] += 1
        if match is not None:
            left.remove(match)
    counts.update((code, "false") for code, _ in left)
    return counts


def quality() -> None:
    """Print precision and recall, of each code and of all."""
    counts: Counter[tuple[str, str]] = Counter()
    scripts = sorted(PROGRAMS.glob("*/*.py"))
    for script in scripts:
        if script.parent.name == "ranks":
            output = on_ranks([RankRun(("check", str(script), "--format", "json"))])[0][0].output
        else:
            steps = ["--steps", "3"] if script.parent.name == "clean" else []
            output = gradinspect(
                "check", script, "--format", "json", "--quiet-script", *steps, *options_of(script)
            ).stdout
        counts += judge(declared_findings(script), found_in(output))
    broken = sum(bool(declared_findings(script)) for script in scripts)
    print(f"Findings in {broken} broken and {len(scripts) - broken} clean programs")
    print(f"  {'code':6} {'right':>6} {'false':>6} {'missed':>7} {'precision':>10} {'recall':>7}")
    for code in sorted({code for code, _ in counts}):
        print_row(code, *(counts[code, kind] for kind in ("right", "false", "missed")))
    print_row(
        "all", *(sum(n for (_, one), n in counts.items() if one == kind) for kind in ("right", "false", "missed"))
    )


def print_row(name: str, right: int, false: int, missed: int) -> None:
    """Print one line of the table."""
    precision = right / (right + false) if right + false else 1.0
    recall = right / (right + missed) if right + missed else 1.0
    print(f"  {name:6} {right:6} {false:6} {missed:7} {precision:10.3f} {recall:7.3f}")


def seconds_a_step(program: Program, *verb: str, num_skipped: int | None = None) -> float:
    """Run a program, by itself or under a verb, and return the median CPU time of the steps that count."""
    command = [sys.executable, *verb, str(TRAIN), *(("--",) if verb else ()), program.name, str(program.num_steps)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    lines = [line for line in done.stdout.splitlines() if line[:1].isdigit() and "." in line]
    if done.returncode or not lines:
        raise SystemExit(f"'{' '.join(command)}' ended with {done.returncode}:\n{done.stderr}")
    skipped = program.num_skipped if num_skipped is None else num_skipped
    return statistics.median(map(float, lines[0].split()[skipped:]))


def cost() -> None:
    """Print the CPU time of a step by itself, under trace, watched by check, for one rule, and after check has left."""
    print(f"A training step, CPU time: the median of {REPEATS} runs in turns")
    print(
        f"  {'program':16} {'plain':>9} {'trace':>9} {'check':>9} {'GI101':>9} {'left':>9}   check / plain, "
        "--select GI101 / plain, left / plain"
    )
    check = ("-m", "gradinspect", "check", "--continue", "--steps")
    for program in PROGRAMS_TO_TIME:
        runs = [
            {
                "plain": seconds_a_step(program),
                "trace": seconds_a_step(program, "-m", "gradinspect", "trace", "--continue"),
                "check": seconds_a_step(program, *check, str(program.num_steps)),
                "GI101": seconds_a_step(program, *check, str(program.num_steps), "--select", "GI101"),
                "left": seconds_a_step(program, *check, str(NUM_LEFT), num_skipped=NUM_LEFT + 1),
            }
            for _ in range(REPEATS)
        ]
        times = "".join(f" {statistics.median(run[name] for run in runs):7.3f} s" for name in runs[0])
        print(f"  {program.name:16}{times}   {', '.join(ratio(runs, one) for one in ('check', 'GI101', 'left'))}")


EVALUATION = """
import resource, sys, torch
net = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8))
batch = torch.randn(512, 64)  # each activation 1 MiB
with torch.no_grad():
    for _ in range(int(sys.argv[1])):
        net(batch).argmax(1)
for _ in range(2):
    net(batch).square().mean().backward()
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def memory() -> None:
    """Print the peak memory of an evaluation before training, by itself and under check."""
    print("An evaluation before training, peak of the process in MiB")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "evaluation.py"
        script.write_text(EVALUATION)
        for num_batches in ("1000", "10000"):
            peaks = []
            for verb in ((), ("-m", "gradinspect", "check", "--continue")):
                command = [sys.executable, *verb, str(script), *(("--",) if verb else ()), num_batches]
                done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
                peaks += [line.split()[1] for line in done.stdout.splitlines() if line.startswith("peak ")]
            print(f"  {num_batches:>6} batches: plain {peaks[0]}, check {peaks[1]}")


def ratio(runs: list[dict[str, float]], name: str) -> str:
    """Write how many times the plain time something takes: the median, and the extremes."""
    ratios = sorted(run[name] / run["plain"] for run in runs)
    return f"x{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


if __name__ == "__main__":
    cost()
    memory()
    quality()
