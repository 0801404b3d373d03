"""Run programs under every verb on the CPU and on the simulated device, and say where we report something else.

Results there are the CPU's bit for bit, so what differs in a report follows from the device: rightly, and then its
reason stands in device_differences.py, or as an error of ours.

NOTE [What may differ everywhere]
Left out of what is compared: the name of the device; times; the curve of `fit`, whose axis counts the allocations of a
device; the bytes of each device in `memory`, since Python numbers are on the CPU; in a capture file the sequence
numbers, which count for each thread, and the number of the thread.
"""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from check_expectations import options_of
from device_differences import ALL, ALLOWED, Allowed
from device_fits import fit_differences
from device_programs import programs, write_all
from device_runs import CPU, SIMULATED, DeviceRuns, Ran

DEVICE_OF_TENSOR = re.compile(rf"(?<=[\])]) {SIMULATED}:\d\b")
TYPE_OF_TENSOR = re.compile(rf"\b{SIMULATED}(\w+)Type\b")  # as torch's errors have it
DEVICE = re.compile(rf"\b{SIMULATED}(:\d)?\b")
TIME = re.compile(r"\d[\d,.]* (ns|µs|us|ms|s)\b")
GAP = re.compile(r"[ ─━═]{2,}")
BAR = re.compile(r"[ ▏▎▍▌▋▊▉█]*[▏▎▍▌▋▊▉█]")
CURVE = re.compile(r"^  [▁▂▃▄▅▆▇█]+\n  \|.*\n", re.MULTILINE)
BYTES_OF_DEVICE = re.compile(rf"^  on (?:{CPU}|{SIMULATED}:\d) .*\n", re.MULTILINE)  # as `memory` has them
PER_THREAD = ("sequence_nr", "thread")
# The name of a verb here: the forks of one program, each with its command lines. A file is named {name}.
FORKS: tuple[dict[str, str], ...] = (
    {"trace": "trace {name}.py --full --force -o {name}.json"},
    {"saved": "saved {name}.json", "memory": "memory {name}.json", "find": "find {name}.json bytes>=0"},
    {"check": "check {name}.py"},
    {"grads": "grads {name}.py"},
    {"step": "step {name}.py --force --report {name}.md"},
    {"fit": "fit {name}.py"},
    {"fit --real": "fit {name}.py --real"},
    {"--create-graph": "trace {name}.py --create-graph --full --force -o {name}.second.json"},
)
DRAWN = {"trace": ".json", "--create-graph": ".second.json"}  # captures whose trees are compared
WRITTEN = {"trace": ("capture", ".json"), "step": ("report", ".md")}  # files that a verb leaves
VERBS = (
    "trace", "capture", "saved", "memory", "find", "diff", "check", "grads", "step", "report", "fit", "fit --real",
    "--create-graph",
)  # fmt: skip
EQUAL = 0


class Difference(NamedTuple):
    """Where a program under a verb is reported otherwise."""

    program: str
    verb: str
    lines: tuple[str, ...]  # of a unified diff

    @property
    def reason(self) -> str | None:
        """Say why it may be."""
        return next((entry.reason for entry in ALLOWED if allows(entry, self.program, self.verb)), None)


class Comparison(NamedTuple):
    """What came out."""

    compared: frozenset[tuple[str, str]]  # program and verb
    differences: tuple[Difference, ...]
    elapsed_s: dict[str, float]  # by device

    @property
    def not_allowed(self) -> list[Difference]:
        """List those that nothing explains."""
        return [difference for difference in self.differences if difference.reason is None]

    @property
    def not_needed(self) -> list[Allowed]:
        """List what is allowed, and did not occur in any program that it is about."""
        about = {entry for entry in ALLOWED for program, verb in self.compared if allows(entry, program, verb)}
        occurred = {entry for entry in ALLOWED for one in self.differences if allows(entry, one.program, one.verb)}
        return sorted(about - occurred)


def allows(entry: Allowed, program: str, verb: str) -> bool:
    """Say whether an entry of the table is about a program and a verb."""
    is_about_verb = entry.verbs == ALL or verb in entry.verbs.split(",")
    return is_about_verb and re.search(entry.word, programs()[program]) is not None


def compare(names: Sequence[str], folder: Path, built: Path) -> Comparison:
    """Run programs on both devices at once, and compare what is said of them."""
    with DeviceRuns(CPU, built) as on_cpu, DeviceRuns(SIMULATED, built) as on_device, ThreadPoolExecutor() as threads:
        runs = [threads.submit(run_all, device, folder / device.device, names) for device in (on_cpu, on_device)]
        expected, found = (run.result() for run in runs)
        for name in names:
            if (name, "capture") in expected and (name, "capture") in found:
                expected[name, "diff"] = f"exit {EQUAL}"
                found[name, "diff"] = said_by_diff(on_cpu, folder, name)
        elapsed_s = {device.device: device.elapsed_s for device in (on_cpu, on_device)}
    return Comparison(frozenset(expected), tuple(differences(expected, found)), elapsed_s)


def run_all(device: DeviceRuns, folder: Path, names: Iterable[str]) -> dict[tuple[str, str], str]:
    """Run programs under every verb, and return what is compared, by program and verb."""
    names = list(names)
    write_all(folder, device.device, names)
    return {(name, verb): text for name in names for verb, text in run_one(device, folder / name)}


def run_one(device: DeviceRuns, program: Path) -> Iterator[tuple[str, str]]:
    """Run one program under every verb."""
    for fork in FORKS:
        lines = [line.format(name=program.name).split() for line in fork.values()]
        if "check" in fork:
            lines[0] += options_of(program.with_suffix(".py"))
        for verb, ran in zip(fork, device.run(program.parent, lines), strict=True):
            capture = program.with_suffix(DRAWN.get(verb, ".none"))
            yield verb, printed(drawn(device, capture, ran) if capture.exists() else ran, program.parent)
            name, suffix = WRITTEN.get(verb, ("", ""))
            if name and program.with_suffix(suffix).exists():
                yield name, written(program.with_suffix(suffix))


def drawn(device: DeviceRuns, capture: Path, ran: Ran) -> Ran:
    """Draw the tree of a capture without its device, whose name would break lines elsewhere."""
    moved = capture.with_suffix(".moved.json")
    moved.write_text(DEVICE.sub(CPU, capture.read_text()))
    (tree,) = device.run(capture.parent, [["trace", moved.name, "--full"]])
    return Ran(ran.code, tree.output, ran.errors + tree.errors)


def said_by_diff(runs: DeviceRuns, folder: Path, name: str) -> str:
    """Compare both captures with `diff`, to which they must be the same graph."""
    files = [str(folder / device / f"{name}.json") for device in (CPU, SIMULATED)]
    (ran,) = runs.run(folder, [["diff", *files, "--ignore", "device"]])
    return f"exit {EQUAL}" if ran.code == EQUAL else printed(ran, folder)


def printed(ran: Ran, folder: Path) -> str:
    """Write what a command printed as it is compared: NOTE [What may differ everywhere]."""
    text = f"{ran.output}\n{ran.errors}\nexit {ran.code}".replace(str(folder), "FOLDER")
    return without_device(CURVE.sub("", BYTES_OF_DEVICE.sub("", text)))


def without_device(text: str) -> str:
    """Leave out the device, times, and how columns are aligned."""
    text = TYPE_OF_TENSOR.sub(r"torch.\1Tensor", DEVICE_OF_TENSOR.sub("", text))
    text = DEVICE.sub(CPU, text).replace(f"(type='{CPU}', index=0)", f"(type='{CPU}')")
    return GAP.sub("  ", BAR.sub("", TIME.sub("TIME", text)))


def written(path: Path) -> str:
    """Write what a verb left in a file as it is compared: NOTE [What may differ everywhere]."""
    if path.suffix != ".json":
        return without_device(path.read_text())
    return DEVICE.sub(CPU, json.dumps(without_threads(json.loads(path.read_text())), indent=0))


def without_threads(value: Any) -> Any:
    """Leave out of a capture what counts for each thread."""
    if isinstance(value, dict):
        return {key: without_threads(item) for key, item in value.items() if key not in PER_THREAD}
    return [without_threads(item) for item in value] if isinstance(value, list) else value


def differences(expected: dict[tuple[str, str], str], found: dict[tuple[str, str], str]) -> Iterable[Difference]:
    """Compare what was said of each program."""
    for program, verb in sorted({*expected, *found}):
        texts = [said.get((program, verb), "nothing") for said in (expected, found)]
        compared = fit_differences(*texts) if verb.startswith("fit") else lines_that_differ(*texts)
        lines = tuple(compared)
        if lines:
            yield Difference(program, verb, lines)


def lines_that_differ(expected: str, found: str) -> Iterable[str]:
    """List them as a unified diff does."""
    diff = difflib.unified_diff(expected.splitlines(), found.splitlines(), CPU, SIMULATED, lineterm="", n=0)
    return list(diff)[2:]
