"""What a finding is recognized by in another run, on another machine, after other lines have changed.

NOTE [Fingerprints]
A fingerprint is a digest of the code and, for each line that the finding names, of its file, its function and its text.
Not of line numbers, which move with every edit above. Not of our text: it counts calls, names classes of torch and
shows values, which differ between versions and seeds. The file is relative to the project, so it is the same wherever
the project is checked out, and a copy of a script in another folder has findings of its own. The function keeps equal
lines apart. Of the text, comments and spaces do not count, so neither an ignore comment nor a formatter changes it.

The lines of the training loop, which call backward and the optimizer, and the caller of a helper count only if no other
is named: any loop may lead to a mistake in a layer, and is edited more often. Findings that are equal in all this are
numbered in the order of lines.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from gradinspect.checks.findings import BACKWARD, CALLED, STEP, Finding, Place, ProgramFile

_DIGITS = 16
_LOOP = {BACKWARD, CALLED, STEP}  # roles


def with_fingerprints(
    findings: Sequence[Finding], files: Sequence[ProgramFile], path_of: Callable[[str], str]
) -> tuple[Finding, ...]:
    """Give each finding its fingerprint: `4f1c02d9a36b7e58`, and `4f1c02d9a36b7e58:2` for a second one like it.

    Args:
        findings: Those of one run.
        files: The files that they name.
        path_of: Maps a file name in the record to its path in the project.
    """
    comments = {(file.name, line): text for file in files for line, text in file.comments}

    def digest(finding: Finding) -> str:
        main = [place for place in finding.places if place.role not in _LOOP] or finding.places
        parts = [finding.code]
        for place in main:
            text = place.code.removesuffix(comments.get((place.file, place.line), ""))
            parts += (path_of(place.file), place.function, "".join(text.split()))
        return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:_DIGITS]

    counts: Counter[str] = Counter()
    numbered: dict[int, str] = {}
    for index in sorted(range(len(findings)), key=lambda index: _lines(findings[index].places)):
        found = digest(findings[index])
        counts[found] += 1
        numbered[index] = found if counts[found] == 1 else f"{found}:{counts[found]}"
    return tuple(replace(finding, fingerprint=numbered[index]) for index, finding in enumerate(findings))


def _lines(places: Sequence[Place]) -> list[tuple[str, int]]:
    return [(place.file, place.line) for place in places]
