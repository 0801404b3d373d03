"""What of the findings of a run is reported, and what is not: selected codes, ignore comments, a baseline."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from gradinspect.checks.baseline import Baseline, Known, compared
from gradinspect.checks.findings import Findings, selected
from gradinspect.checks.fingerprints import with_fingerprints
from gradinspect.checks.ignore_comments import comment_notes, without_ignored
from gradinspect.checks.registry import codes, registry


class Selection(NamedTuple):
    """The codes that are reported, and what is looked for besides."""

    only: tuple[str, ...] = ()  # also beginnings of codes
    skip: tuple[str, ...] = ()
    gradcheck: bool = False

    def has(self, code: str) -> bool:
        """Return whether a code is reported."""
        return code.startswith(self.only or ("",)) and not (self.skip and code.startswith(self.skip))


def can_find(found: Findings, selection: Selection) -> Callable[[str], bool]:
    """Return a function that says whether a run would have found a mistake of a code."""

    def can(code: str) -> bool:
        rule = registry().rules.get(code)
        if rule is None or not found.is_complete or not selection.has(code):
            return False
        words = rule.command.split()
        return ("--gradcheck" not in words or selection.gradcheck) and ("torchrun" not in words or found.num_ranks > 1)

    return can


def without_comments(found: Findings, selection: Selection, path_of: Callable[[str], str]) -> Findings:
    """Keep what is selected and no comment ignores; give findings their fingerprints, and report unused comments.

    Args:
        found: Everything that was found.
        selection: What is reported.
        path_of: Maps a file name in the record to its path in the project.
    """
    findings = with_fingerprints(selected(found.findings, selection.only, selection.skip), found.files, path_of)
    comments = [comment for file in found.files for comment in file.ignores]
    ignored = without_ignored(findings, comments)
    notes = comment_notes(comments, ignored, codes(), can_find(found, selection))
    return replace(found, findings=ignored.reported, suppressed=ignored.suppressed, notes=(*found.notes, *notes))


def without_known(found: Findings, selection: Selection, baseline: Baseline, *, program: str, name: str) -> Findings:
    """Keep what a baseline does not have, and name what it need not have.

    Args:
        found: What comments left.
        selection: What is reported.
        baseline: What is known.
        program: What was run.
        name: The name of the baseline's file.
    """
    reported, suppressed, vanished = compared(
        found.findings, baseline, program=program, name=name, can_find=can_find(found, selection)
    )
    notes = (_vanished_note(vanished, name),) if vanished else ()
    return replace(found, findings=reported, suppressed=(*found.suppressed, *suppressed), notes=(*found.notes, *notes))


def _vanished_note(vanished: Sequence[Known], name: str) -> str:
    named = ", ".join(f"{one.code} {one.file}:{one.line}" if one.file else one.code for one in vanished)
    return f"No longer needed in {name}: {named}. --write-baseline removes them."
