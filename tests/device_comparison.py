"""Run programs under every verb on the CPU and on the simulated device, and say where we report something else.

Results there are the CPU's bit for bit, so what differs in a report follows from the device: rightly, and then its
reason stands in device_differences.py, or as an error of ours.

NOTE [What may differ everywhere]
Left out of what is compared: the name of the device; times; the curve of `fit`, whose axis counts the allocations of a
device; the bytes of each device in `memory`, since Python numbers are on the CPU; in a capture file the sequence
numbers, which count for each thread, and the number of the thread; the time and process of lines of torch's log, and
its line, once a second at most, about memory of the CPU that an operator of the simulated device has allocated.

NOTE [What may differ in some programs]
An entry of device_differences.py takes one difference away, and what is left must be equal. The captures of both are
rewritten, and the verbs that read captures run again on them, so that a line that is wrong is still seen.
"""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from check_expectations import options_of
from device_differences import ALLOWED, Allowed
from device_fits import fit_differences
from device_programs import NOT_COMPARED, programs, write_all
from device_rereading import READ_CAPTURE, Rereader
from device_runs import CPU, SIMULATED, DeviceRuns
from device_said import EQUAL, printed, said_by_diff, tree_of, written
from device_texts import Texts

TREE = "\n--- tree\n"  # below it in a text, the tree of a capture
# The name of a verb here: the forks of one program, each with its command lines. A file is named {name}.
FORKS: tuple[dict[str, str], ...] = (
    {"trace": "trace {name}.py --full --force -o {name}.json"},
    READ_CAPTURE,
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


class Difference(NamedTuple):
    """Where a program under a verb is reported otherwise."""

    program: str
    verb: str
    lines: tuple[str, ...]  # of a unified diff
    entries: tuple[Allowed, ...]  # that have taken something away
    left: tuple[str, ...]  # lines that no entry takes away

    @property
    def is_allowed(self) -> bool:
        """Say whether nothing is left."""
        return not self.left


class Comparison(NamedTuple):
    """What came out."""

    compared: frozenset[tuple[str, str]]  # program and verb
    differences: tuple[Difference, ...]
    elapsed_s: dict[str, float]  # by device

    @property
    def not_allowed(self) -> list[Difference]:
        """List those that are not explained."""
        return [difference for difference in self.differences if not difference.is_allowed]

    @property
    def not_needed(self) -> list[Allowed]:
        """List the entries that took nothing away from the program that is to need them."""
        needed = {(one.program, entry) for one in self.differences if one.is_allowed for entry in one.entries}
        compared = {program for program, _ in self.compared}
        return [entry for entry in ALLOWED if entry.witness in compared and (entry.witness, entry) not in needed]


def compare(names: Sequence[str], folder: Path, built: Path) -> Comparison:
    """Run programs on both devices at once, and compare what is said of them."""
    with DeviceRuns(CPU, built) as on_cpu, DeviceRuns(SIMULATED, built) as on_device, ThreadPoolExecutor() as threads:
        runs = [threads.submit(run_all, device, folder / device.device, names) for device in (on_cpu, on_device)]
        expected, found = (run.result() for run in runs)
        for name in names:
            if (name, "capture") in expected and (name, "capture") in found:
                expected[name, "diff"] = f"exit {EQUAL}"
                found[name, "diff"] = said_by_diff(on_cpu, folder, f"{name}.json")
        judged = list(differences(expected, found, Rereader(folder, (on_cpu, on_device))))
        elapsed_s = {device.device: device.elapsed_s for device in (on_cpu, on_device)}
    return Comparison(frozenset(expected), tuple(judged), elapsed_s)


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
            is_drawn = capture.exists()
            text = printed(ran._replace(output="") if is_drawn else ran, program.parent)
            yield verb, text + TREE + tree_of(device, capture) if is_drawn else text
            name, suffix = WRITTEN.get(verb, ("", ""))
            if name and program.with_suffix(suffix).exists():
                yield name, written(program.with_suffix(suffix))


def differences(
    expected: dict[tuple[str, str], str], found: dict[tuple[str, str], str], rereader: Rereader
) -> Iterable[Difference]:
    """Compare what was said of each program."""
    for program, verb in sorted({*expected, *found}):
        texts = expected.get((program, verb), "nothing"), found.get((program, verb), "nothing")
        lines = tuple(lines_that_differ(verb, texts))
        if lines and (program, verb) not in NOT_COMPARED:
            yield judged(Difference(program, verb, lines, (), lines), texts, rereader)


def judged(difference: Difference, texts: Texts, rereader: Rereader) -> Difference:
    """Take away what entries are about, one after the other: NOTE [What may differ in some programs]."""
    program, verb = difference.program, difference.verb
    entries = [entry for entry in ALLOWED if entry.is_about(programs()[program], verb)]
    texts, needed = without_captured(difference, texts, entries, rereader)
    left = tuple(lines_that_differ(verb, texts))
    for entry in entries:
        if left and entry.texts is not None:
            texts = entry.texts(*texts)
            before, left = left, tuple(lines_that_differ(verb, texts))
            needed += [entry] * (left != before)
    return difference._replace(entries=tuple(needed), left=left)


def without_captured(
    difference: Difference, texts: Texts, entries: Sequence[Allowed], rereader: Rereader
) -> tuple[Texts, list[Allowed]]:
    """Take away what entries are about that rewrite captures."""
    rewriting = [entry for entry in entries if entry.captures is not None]
    suffix = DRAWN.get(difference.verb, ".json")
    if not rewriting or not rereader.has_both(f"{difference.program}{suffix}"):
        return texts, []
    said, needed = rereader.texts(f"{difference.program}{suffix}", rewriting)
    if not needed:
        return texts, []
    if difference.verb not in DRAWN:
        return said[difference.verb], needed
    trees = zip(texts, said["trace"], strict=True)
    rest, other = (text.partition(TREE)[0] + TREE + tree for text, tree in trees)
    return (rest, other), needed


def lines_that_differ(verb: str, texts: Texts) -> Iterable[str]:
    """List them as a unified diff does."""
    if verb.startswith("fit"):
        return fit_differences(*texts)
    expected, found = (text.splitlines() for text in texts)
    return list(difflib.unified_diff(expected, found, CPU, SIMULATED, lineterm="", n=0))[2:]
