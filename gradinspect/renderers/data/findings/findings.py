"""Findings as JSON, and as annotations in a GitHub pull request."""

from collections.abc import Callable
from typing import Final

from gradinspect.checks.findings import Finding, Findings, Place, place_to_change
from gradinspect.renderers.data.table import Columns, fields
from gradinspect.units import escape_control

FINDINGS: Final[Columns[Findings]] = fields(*(name for name in Findings.__struct_fields__ if name != "files"))


def render_findings_github(found: Findings, path_of: Callable[[str], str]) -> str:
    """Write one workflow command per finding, attached to the line to change, and one per note.

    Args:
        found: The findings.
        path_of: Maps a file name in the record to its path in the repository.

    Source: the documentation of GitHub Actions, "Workflow commands": % and newlines are escaped, in properties also
    colons and commas.
    """
    own = {file.name for file in found.files}
    errors = (_annotation(finding, place_to_change(finding, own), path_of) for finding in found.findings)
    return "".join(f"{line}\n" for line in (*errors, *(f"::notice::{escape_message(note)}" for note in found.notes)))


def _annotation(finding: Finding, place: Place | None, path_of: Callable[[str], str]) -> str:
    """Attach a finding to a line."""
    lines = [
        escape_control(f"{place.role}: {path_of(place.file)}:{place.line}  {place.code}") for place in finding.places
    ]
    message = escape_message("\n".join([*lines, finding.text, finding.remedy]))
    title = escape_property(f"{finding.code} {finding.title}")
    where = "" if place is None else f"file={escape_property(path_of(place.file))},line={place.line},"
    return f"::error {where}title={title}::{message}"


def escape_message(text: str) -> str:
    """Escape what is not printable, as for a terminal; GitHub turns %0A into a newline."""
    return "%0A".join(escape_control(line).replace("%", "%25") for line in text.split("\n"))


def escape_property(text: str) -> str:
    """Escape a property of a workflow command."""
    return escape_message(text).replace(":", "%3A").replace(",", "%2C")
