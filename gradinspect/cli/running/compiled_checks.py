"""The findings on a compiled step, from its comparison with the same step in eager."""

import linecache
from collections.abc import Iterator, Sequence
from pathlib import Path

from gradinspect.analyses.diff.compiled import CompiledDiff
from gradinspect.checks.findings import Finding, Findings, ProgramFile
from gradinspect.checks.ignore_comments import program_file
from gradinspect.checks.registry import declared, findings_on
from gradinspect.cli.running.compiled_runs import compare_compiled
from gradinspect.request import Request
from gradinspect.units import format_count


def check_compiled(request: Request) -> Findings:
    """Compare a compiled program with itself in eager, and report as `check` does.

    Args:
        request: The program.

    Raises:
        GradInspectError: It compiles nothing, or has no backward call.
        ScriptFailedError: It failed.
    """
    diff = compare_compiled(request)
    findings = declared(findings_on(diff))
    return Findings(
        source=diff.label,
        num_calls=len(diff.calls),
        findings=findings,
        files=tuple(_files(findings, Path(diff.base_folder))),
        is_complete=not diff.incomparable,
        notes=tuple(_notes(diff)),
    )


def _notes(diff: CompiledDiff) -> Iterator[str]:
    """Say what was compared, and what was not."""
    values, graphs = format_count(diff.num_compared, "value"), format_count(diff.num_graphs, "compiled graph")
    yield f"Compared with eager: {values} of {graphs}. Without --compiled, check looks for all other mistakes."
    for sentence in diff.incomparable:
        yield f"Not compared: {sentence}."
    if diff.replay_problem:
        yield f"Not compared operator by operator: {diff.replay_problem}."


def _files(findings: Sequence[Finding], base_folder: Path) -> Iterator[ProgramFile]:
    """Read the program's own files that findings name; others are not below its folder."""
    named: dict[str, set[int]] = {}
    for place in (place for finding in findings for place in finding.places):
        named.setdefault(place.file, set()).add(place.line)
    for name, numbers in named.items():
        lines = linecache.getlines(str(base_folder / name))
        if lines:
            yield program_file(name, str(base_folder / name), lines, numbers, numbers)
