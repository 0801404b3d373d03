"""The findings of a run, with what they do not cover."""

import re
from collections.abc import Sequence

from gradinspect.checks.evidence.call_choice import CallChoice
from gradinspect.checks.evidence.custom_functions.functions import unverified_notes
from gradinspect.checks.evidence.custom_functions.gradcheck import unchecked_notes
from gradinspect.checks.evidence.logs import ProgramLogs
from gradinspect.checks.evidence.opaque_parts import compiled_parts, opaque_notes
from gradinspect.checks.evidence.program_files import program_files
from gradinspect.checks.evidence.ranks import missing_notes
from gradinspect.checks.evidence.watch_window import WatchWindow
from gradinspect.checks.evidence.watched_backwards import WatchedBackwards
from gradinspect.checks.facts.failures import FailedCall
from gradinspect.checks.findings import Finding, Findings, merged
from gradinspect.checks.registry import declared, findings_on, rule_of
from gradinspect.checks.spelling import spelled
from gradinspect.graph import Frame
from gradinspect.runner.engine import missed_notes, not_followed_notes
from gradinspect.runner.run import Run
from gradinspect.source import Expression
from gradinspect.torch_api.probes import missing_sentences

_REFUSES_NAN = re.compile(r"invalid values:.*\bnan\b|contains either `inf`, `nan`", re.DOTALL)


def conclusion(
    run: Run,
    logs: ProgramLogs,
    watched: WatchedBackwards,
    *,
    window: WatchWindow,
    choice: CallChoice,
    failure: FailedCall | None = None,
) -> Findings | None:
    """Return what was found so far; None before the first call, unless an error ended the program.

    Args:
        run: The run.
        logs: What the program did.
        watched: Its backward calls.
        window: How long it was watched.
        choice: Which calls were looked at.
        failure: The call of torch that ended the program.
    """
    observed, recorder = choice.observed, run.recorder
    if not (observed.backwards or observed.grads or failure):
        return None
    found = recorder.errors.found
    checked = logs.custom.checked()
    findings = declared(
        (
            *found(watched.findings),
            *found(logs.unused.findings),
            *found(lambda: logs.cuts.findings(logs.training.replaced)),
            *(
                one
                for fact in (
                    *logs.training.facts(),
                    *logs.calls.arguments.facts(logs.frame),
                    *logs.losses.facts(logs.frame),
                    *logs.read_once.facts(logs.frame),
                    *checked,
                )
                for one in findings_on(fact, found)
            ),
        )
    )
    if failure is not None and not any(_explains(finding, failure) for finding in findings):
        findings = declared((*findings, *findings_on(failure, found)))
    findings = spelled(merged(_without_effects(findings)), watched.models)
    ranks = logs.ranks
    return Findings(
        rank=0 if ranks is None else ranks.rank,
        num_ranks=1 if ranks is None else ranks.num_ranks,
        source=run.request.label,
        num_calls=observed.backwards,
        num_grads=observed.grads,
        findings=findings,
        files=tuple(program_files(recorder.frames, findings, logs.folder)),
        is_complete=_saw_all(run, logs, watched, window) and choice.saw_all,
        has_failed=run.has_failed,
        notes=(
            *recorder.errors.notes(),
            *window.notes(),
            *choice.notes(),
            *run.captured_notes,
            *opaque_notes(sorted(watched.opaque | set(compiled_parts(logs.training.compiled_lines())))),
            *watched.notes(),
            *(
                unchecked_notes(checked, watched.custom)
                if logs.custom.in_full
                else unverified_notes(watched.custom, checked, logs.custom.too_large)
            ),
            *logs.cuts.notes(),
            *missed_notes(run.interceptor.num_missed),
            *not_followed_notes(recorder.others.num_not_followed),
            *missing_notes(() if ranks is None else ranks.missing),
            *missing_sentences(),
        ),
    )


def _explains(finding: Finding, failure: FailedCall) -> bool:
    """Return whether a finding names the line that failed, or what has made the NaN that torch refuses there."""
    is_of_nan = rule_of(finding.code).is_nonfinite and _REFUSES_NAN.search(failure.text) is not None
    return is_of_nan or _names(finding, failure.frame)


def _names(finding: Finding, frame: Frame) -> bool:
    """Return whether a finding explains what happens on a line."""
    return any((place.file, place.line) == (frame.file, frame.line) for place in finding.places)


def _without_effects(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Leave out the findings that another one explains."""
    explained = {(code, *line) for one in findings for code in rule_of(one.code).explains for line in _lines(one)}
    special = {name for one in findings if not rule_of(one.code).is_general for name in one.subjects}
    return tuple(
        one
        for one in findings
        if explained.isdisjoint((one.code, *line) for line in _lines(one))
        and not (rule_of(one.code).is_general and special.issuperset(one.subjects))
    )


def _lines(finding: Finding) -> list[tuple[str, int]]:
    return [(place.file, place.line) for place in finding.places]


def _saw_all(run: Run, logs: ProgramLogs, watched: WatchedBackwards, window: WatchWindow) -> bool:
    """Return whether a mistake would have been found; a model alone is not the program that trains it."""
    is_alone = isinstance(run.program, Expression)
    is_missed = (
        run.interceptor.num_missed
        or run.recorder.others.num_not_followed
        or run.recorder.errors.hid_anything
        or logs.hid_anything
    )
    return not (is_alone or run.has_failed or is_missed) and watched.saw_all and window.is_complete
