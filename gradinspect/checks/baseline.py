"""A baseline: findings that are known and not reported. Reads and writes no file.

NOTE [Baselines]
One file may hold the findings of several programs, each under the command line that found it: a run of one program says
nothing of the others, and neither reports nor removes their entries. But a finding that any of them has is known:
programs share code.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from gradinspect.checks.findings import Finding, Suppression, place_to_change
from gradinspect.graph import Record

FORMAT = "gradinspect baseline"


class Known(Record, frozen=True, kw_only=True):
    """One known finding. Only its fingerprint counts; the rest is for people who read the file."""

    fingerprint: str
    code: str
    file: str = ""
    line: int = 0  # when it was written
    text: str = ""  # of that line


class Baseline(Record, frozen=True, kw_only=True):
    """Known findings, by the program that has them."""

    format: str = FORMAT
    version: int = 1
    programs: dict[str, tuple[Known, ...]]


class Compared(NamedTuple):
    """Findings, divided by a baseline."""

    reported: tuple[Finding, ...]
    suppressed: tuple[Finding, ...]
    vanished: tuple[Known, ...]  # of this program, and not found any more


def read_baseline(content: bytes) -> Baseline | None:
    """Read what `write_baseline` wrote; None if it is something else."""
    try:
        found = msgspec.json.decode(content, type=Baseline)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return found if (found.format, found.version) == (FORMAT, 1) else None


def write_baseline(baseline: Baseline) -> bytes:
    """Write a baseline so that a change of it reads well in a diff."""
    document = {"format": baseline.format, "version": baseline.version, "programs": baseline.programs}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def compared(
    findings: Sequence[Finding], baseline: Baseline, *, program: str, name: str, can_find: Callable[[str], bool]
) -> Compared:
    """Take out the findings that a baseline has, and list those that it need not have.

    Args:
        findings: What was found.
        baseline: What is known.
        program: What was run.
        name: The name of the baseline's file.
        can_find: Returns whether this run would have found a mistake of a code.
    """
    known = {one.fingerprint for entries in baseline.programs.values() for one in entries}
    why = Suppression(kind="baseline", place=name)
    found = {finding.fingerprint for finding in findings}
    return Compared(
        reported=tuple(finding for finding in findings if finding.fingerprint not in known),
        suppressed=tuple(replace(finding, suppression=why) for finding in findings if finding.fingerprint in known),
        vanished=tuple(
            one for one in baseline.programs.get(program, ()) if one.fingerprint not in found and can_find(one.code)
        ),
    )


def updated(
    baseline: Baseline,
    findings: Sequence[Finding],
    *,
    program: str,
    path_of: Callable[[str], str],
    can_find: Callable[[str], bool],
) -> Baseline:
    """Return a baseline with the findings of a program as they are now; what this run cannot find stays."""
    new = [_known(finding, path_of) for finding in findings]
    found = {one.fingerprint for one in new}
    kept = [
        one for one in baseline.programs.get(program, ()) if one.fingerprint not in found and not can_find(one.code)
    ]
    entries = sorted((*new, *kept), key=lambda one: (one.file, one.line, one.code, one.fingerprint))
    programs = {**baseline.programs, program: tuple(entries)}
    return replace(baseline, programs={name: programs[name] for name in sorted(programs) if programs[name]})


def _known(finding: Finding, path_of: Callable[[str], str]) -> Known:
    place = place_to_change(finding, {one.file for one in finding.places})
    if place is None:
        return Known(fingerprint=finding.fingerprint, code=finding.code)
    return Known(
        fingerprint=finding.fingerprint, code=finding.code, file=path_of(place.file), line=place.line, text=place.code
    )
