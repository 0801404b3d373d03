"""Rewrite the captures of a program, and say again what the verbs say that read them."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from device_captures import Captures
from device_differences import Allowed
from device_runs import CPU, SIMULATED, DeviceRuns
from device_said import EQUAL, loaded, printed, said_by_diff, same, tree_of, written
from device_texts import Texts

READ_CAPTURE = {"saved": "saved {name}.json", "memory": "memory {name}.json", "find": "find {name}.json bytes>=0"}


class Rereader:
    """Rewrites captures of programs, and runs the verbs that read captures on them again."""

    def __init__(self, folder: Path, runs: tuple[DeviceRuns, DeviceRuns]) -> None:
        """Set up.

        Args:
            folder: Where the captures are.
            runs: The processes of the CPU and of the device.
        """
        self._folder, self._runs = folder, runs
        self._found: dict[tuple[str, tuple[Allowed, ...]], tuple[dict[str, Texts], list[Allowed]]] = {}

    def has_both(self, name: str) -> bool:
        """Say whether the program was captured on both devices."""
        return all((self._folder / runs.device / name).exists() for runs in self._runs)

    def texts(self, name: str, entries: Sequence[Allowed]) -> tuple[dict[str, Texts], list[Allowed]]:
        """Return what both say of the rewritten captures, by verb, and the entries that were needed.

        Args:
            name: Of the captures, in the folder of each device.
            entries: What to take away, one after the other until both are the same.
        """
        key = name, tuple(entries)
        if key not in self._found:
            self._found[key] = self._reread(name, entries)
        return self._found[key]

    def _reread(self, name: str, entries: Sequence[Allowed]) -> tuple[dict[str, Texts], list[Allowed]]:
        captures, needed = rewritten(self._folder, name, entries)
        if not needed:
            return {}, []
        new = name.replace(".json", ".rewritten.json")
        said: list[dict[str, str]] = []
        for runs, capture in zip(self._runs, captures, strict=True):
            path = self._folder / runs.device / new
            path.write_text(json.dumps(capture))
            said.append(dict(said_of_capture(runs, path)))
        found = {verb: (said[0][verb], said[1][verb]) for verb in said[0]}
        return {**found, "diff": (f"exit {EQUAL}", said_by_diff(self._runs[0], self._folder, new))}, needed


def rewritten(folder: Path, name: str, entries: Sequence[Allowed]) -> tuple[Captures, list[Allowed]]:
    """Rewrite the captures of a program until they are the same, and return them with the entries that were needed."""
    captures = loaded(folder / CPU / name), loaded(folder / SIMULATED / name)
    needed = []
    for entry in entries:
        if entry.captures is None or same(*captures):
            continue
        before, captures = captures, entry.captures(*captures)
        needed += [entry] * (captures != before)
    return captures, needed


def said_of_capture(runs: DeviceRuns, path: Path) -> Iterator[tuple[str, str]]:
    """Say what the verbs that read captures say of one."""
    yield "trace", tree_of(runs, path)
    yield "capture", written(path)
    names = {"find": path.with_suffix(".moved").stem + ".moved"}  # the device's name would shorten long lines
    lines = [line.format(name=names.get(verb, path.stem)).split() for verb, line in READ_CAPTURE.items()]
    for verb, ran in zip(READ_CAPTURE, runs.run(path.parent, lines), strict=True):
        yield verb, printed(ran, path.parent)
