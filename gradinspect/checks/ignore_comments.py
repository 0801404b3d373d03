"""Comments of a program that keep a finding from being reported: `# gradinspect: ignore[GI301] frozen on purpose`.

NOTE [Ignore comments]
A comment belongs to the statement that it is written in, however many lines that has; alone on its line, it belongs to
the next statement. It names codes in full, so it hides nothing that nobody had seen when it was written: one without a
code ignores nothing, and is reported. Comments are read by `tokenize`, so text in a string does not count.

A comment is unused if its statement has run and no finding with its code names it.
"""

import difflib
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from gradinspect.checks.findings import Finding, IgnoreComment, Place, ProgramFile, Suppression
from gradinspect.checks.source_comments import line_comments, lines_run, statements

_MARK = "gradinspect:"
_IGNORE = re.compile(r"#\s*gradinspect:\s*ignore\b(?:\s*\[(?P<codes>[^\]]*)\])?(?P<reason>[^#]*)")


class Ignored(NamedTuple):
    """Findings, divided by comments."""

    reported: tuple[Finding, ...]
    suppressed: tuple[Finding, ...]
    used: frozenset[tuple[IgnoreComment, str]]  # comments, with a code that they suppress


def ignore_comments(file: str, lines: Sequence[str], seen: Collection[int]) -> tuple[IgnoreComment, ...]:
    """Read the ignore comments of a file. NOTE [Ignore comments].

    Args:
        file: Its name in the record.
        lines: Its text.
        seen: Lines of it that were seen to run.
    """
    if not any(_MARK in line for line in lines):
        return ()
    found = [
        IgnoreComment(
            file=file,
            line=line,
            first=statement.first,
            last=statement.last,
            codes=tuple(dict.fromkeys(filter(None, (code.strip().upper() for code in _codes(match).split(","))))),
            reason=match["reason"].strip(" \t:-"),
        )
        for statement in statements(lines)
        for line, text in statement.comments
        if (match := _IGNORE.search(text))
    ]
    ran = lines_run(lines, seen) if found else set()
    return tuple(replace(one, has_run=not ran.isdisjoint(range(one.first, one.last + 1))) for one in found)


def program_file(
    name: str, path: str, lines: Sequence[str], seen: Collection[int], named: Collection[int]
) -> ProgramFile:
    """Read the comments of a file.

    Args:
        name: Its name in the record.
        path: Where it is; "" for one that is nowhere.
        lines: Its text.
        seen: Lines of it that were seen to run.
        named: Lines of it that findings name.
    """
    comments = line_comments(lines) if named else {}
    return ProgramFile(
        name=name,
        path=path,
        ignores=ignore_comments(name, lines, seen),
        comments=tuple((line, comments[line]) for line in sorted(named) if line in comments),
    )


def _codes(match: "re.Match[str]") -> str:
    return match["codes"] or ""


def without_ignored(findings: Sequence[Finding], comments: Sequence[IgnoreComment]) -> Ignored:
    """Take out the findings that a comment on one of their lines ignores."""
    reported, suppressed = [], []
    used: set[tuple[IgnoreComment, str]] = set()
    for finding in findings:
        by = [one for one in comments if finding.code in one.codes and any(_is_on(one, at) for at in finding.places)]
        used.update((one, finding.code) for one in by)
        if by:
            where = f"{by[0].file}:{by[0].line}"
            suppressed.append(
                replace(finding, suppression=Suppression(kind="comment", place=where, reason=by[0].reason))
            )
        else:
            reported.append(finding)
    return Ignored(tuple(reported), tuple(suppressed), frozenset(used))


def comment_notes(
    comments: Sequence[IgnoreComment], ignored: Ignored, known: Sequence[str], can_find: Callable[[str], bool]
) -> Iterator[str]:
    """Say which comments ignore nothing, and why.

    Args:
        comments: All that were read.
        ignored: What they did.
        known: All codes.
        can_find: Returns whether this run would have found a mistake of a code.
    """
    for one in comments:
        where = f"{one.file}:{one.line}"
        if not one.codes:
            here = [finding.code for finding in ignored.reported if any(_is_on(one, at) for at in finding.places)]
            example = ", ".join(dict.fromkeys(here)) or "CODE"
            yield (
                f"{where}: 'gradinspect: ignore' names no code, so it ignores nothing. "
                f"Write: gradinspect: ignore[{example}]"
            )
        for code in one.codes:
            if code not in known:
                near = difflib.get_close_matches(code, known, n=1)
                hint = f" Closest match: {near[0]}." if near else ""
                yield f"{where}: no rule has the code '{code}', so 'gradinspect: ignore[{code}]' ignores nothing.{hint}"
            elif one.has_run and (one, code) not in ignored.used and can_find(code):
                yield f"{where}: unused 'gradinspect: ignore[{code}]': no {code} was found there. Remove it."


def _is_on(comment: IgnoreComment, place: Place) -> bool:
    return comment.file == place.file and comment.first <= place.line <= comment.last
