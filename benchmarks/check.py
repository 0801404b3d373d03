"""How good `gradinspect check` is, and what it costs: `python benchmarks/check.py`.

Precision and recall are taken over the programs of tests/check_programs: each finding that a program declares counts as
found if its code and all its lines are there, and each that it does not declare counts as false. The cost is the CPU
time of a step of a 12-layer transformer, every step watched, beside the same script run by itself, in turns.
"""

import json
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from check_expectations import declared_findings, options_of  # noqa: E402  # from the tests
from rank_pairs import run_pair  # noqa: E402
from runs import gradinspect  # noqa: E402

PROGRAMS = ROOT / "tests" / "check_programs"
STEP = Path(__file__).parent / "train_gpt2.py"
STEPS, REPEATS = 6, 3


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
            output = run_pair(str(script))[0][1]
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


def seconds_a_step(*command: str) -> float:
    """Run the training script, and return the median CPU time of its steps but the first."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True, timeout=600)
    line = next(line for line in done.stdout.splitlines() if line[:1].isdigit() and "." in line)
    return statistics.median(map(float, line.split()[1:]))


def cost() -> None:
    """Print the CPU time of a step with and without the check."""
    plain, checked = [], []
    for _ in range(REPEATS):
        plain.append(seconds_a_step(str(STEP), str(STEPS)))
        words = ("-m", "gradinspect", "check", str(STEP), "--continue", "--steps", str(STEPS), "--", str(STEPS))
        checked.append(seconds_a_step(*words))
    before, after = statistics.median(plain), statistics.median(checked)
    print("A training step of a 12-layer transformer, CPU time, every step watched")
    print(f"  plain {before:.3f} s  checked {after:.3f} s  x{after / before:.2f}")


if __name__ == "__main__":
    cost()
    quality()
