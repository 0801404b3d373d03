"""Compare what we say of programs on the CPU and on the simulated device: programs x verbs, equal, or why not.

python benchmarks/devices.py             every program of the tests, some 30 minutes on two cores
python benchmarks/devices.py samples/    those whose name contains a word
"""

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from device_comparison import VERBS, Comparison, compare
from device_programs import NOT_RUN, programs
from simulated_device.building import CannotBuildError, build

LINES = 12  # of each difference that nothing explains
MARKS = {"equal": "=", "allowed": "a", "different": "X", "not there": " "}


def main(words: list[str]) -> int:
    """Print the table, then each difference with its reason or its lines."""
    names = [name for name in programs() if not words or any(word in name for word in words)]
    try:
        built = build()
    except CannotBuildError as error:
        print(f"NOT COMPARED with a device, which cannot be built on this machine: {error}.")
        return 2
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        comparison = compare(names, Path(folder), built)
    print_table(comparison, names)
    print_differences(comparison)
    seconds = ", ".join(f"{device} {elapsed:.0f} s" for device, elapsed in comparison.elapsed_s.items())
    print(f"\n{len(names)} programs, {time.perf_counter() - started:.0f} s ({seconds}); not run: {len(NOT_RUN)}")
    unneeded = comparison.not_needed
    for entry in unneeded:
        print(f"allowed, but {entry.witness} does not need it: {entry.reason} ({entry.verbs})")
    return 1 if comparison.not_allowed or unneeded else 0


def states(comparison: Comparison) -> dict[tuple[str, str], str]:
    """Return what came out for each program and verb."""
    found = dict.fromkeys(comparison.compared, "equal")
    for difference in comparison.differences:
        found[difference.program, difference.verb] = "allowed" if difference.is_allowed else "different"
    return found


def print_table(comparison: Comparison, names: list[str]) -> None:
    """Print a row for each program, and how many of each kind a verb has."""
    found = states(comparison)
    width = max(map(len, names))
    print(f"{'':{width}}  {'  '.join(VERBS)}")
    for name in names:
        marks = [f"{MARKS[found.get((name, verb), 'not there')]:^{len(verb)}}" for verb in VERBS]
        print(f"{name:{width}}  {'  '.join(marks)}")
    print()
    for verb in VERBS:
        counts = Counter(state for (_, one), state in found.items() if one == verb)
        print(f"{verb:15}", ", ".join(f"{counts[state]} {state}" for state in MARKS if counts[state]))


def print_differences(comparison: Comparison) -> None:
    """Print why what differs may, and the lines of what may not."""
    allowed = [one for one in comparison.differences if one.is_allowed]
    for entry, count in Counter(entry for one in allowed for entry in one.entries).items():
        print(f"\nallowed, {count} times: {entry.reason} ({entry.verbs})")
    for difference in comparison.not_allowed:
        print(f"\n{difference.program}, {difference.verb}: different")
        print("\n".join(f"  {line[:200]}" for line in difference.left[:LINES]))
        if len(difference.left) > LINES:
            print(f"  ... {len(difference.left) - LINES} more")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
