"""Findings as SARIF 2.1.0, which code scanning services and editors read.

Source: Static Analysis Results Interchange Format (SARIF) Version 2.1.0, OASIS Standard; GitHub's documentation of its
SARIF support.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from gradinspect.checks.findings import CALLED, Finding, Findings, Place, Suppression, place_to_change
from gradinspect.checks.rule import Rule
from gradinspect.renderers.data.findings.rules import render_rule_markdown
from gradinspect.renderers.data.json import json_text
from gradinspect.units import escape_control

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"  # what the names of files are relative to
INSTALLED = "SITEPACKAGES"
FINGERPRINT = "gradinspect/v1"  # NOTE [Fingerprints] in `checks.fingerprints`
_PLACEHOLDER = re.compile(r"\{(\d+)\}")
_LINK = re.compile(r"\[(?=[^\]]*\]\()")


def render_findings_sarif(
    found: Findings, rules: Sequence[Rule], path_of: Callable[[str], str], *, version: str, program: str
) -> str:
    """Write findings, those that are not reported as suppressed, and all rules.

    Args:
        found: The findings.
        rules: What the rules declare.
        path_of: Maps a file name in the record to its path in the repository.
        version: Of gradinspect.
        program: What was run; the results of one program replace its earlier ones, and no others.
    """
    index = {rule.code: position for position, rule in enumerate(rules)}
    places = _Places({file.name for file in found.files}, path_of)
    results = [_result(finding, index, places) for finding in (*found.findings, *found.suppressed)]
    driver = {"name": "gradinspect", "version": version, "rules": [_rule(rule) for rule in rules]}
    notes = [{"level": "note", "message": _message(note)} for note in found.notes]
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"gradinspect/{escape_control(program)}/"},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
        "originalUriBaseIds": {
            ROOT: {"description": {"text": "The root of the repository."}},
            INSTALLED: {"description": {"text": "The folder of installed packages."}},
        },
        "results": results,
    }
    return json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


class _Places:
    """Writes lines as locations."""

    def __init__(self, own: set[str], path_of: Callable[[str], str]) -> None:
        """Set up.

        Args:
            own: Names of the program's own files.
            path_of: Maps a file name in the record to its path in the repository.
        """
        self.own = own
        self._path_of = path_of

    def location(self, place: Place) -> dict[str, Any]:
        """Write a line without its role."""
        is_own = place.file in self.own
        uri = quote(escape_control(self._path_of(place.file) if is_own else place.file))
        artifact = {"uri": uri, "uriBaseId": ROOT if is_own else INSTALLED}
        region: dict[str, Any] = {"startLine": max(place.line, 1)}
        if place.code:
            region["snippet"] = {"text": escape_control(place.code)}
        location: dict[str, Any] = {"physicalLocation": {"artifactLocation": artifact, "region": region}}
        if place.function:
            name = escape_control(place.function)
            location["logicalLocations"] = [{"fullyQualifiedName": name, "kind": "function"}]
        return location


def _rule(rule: Rule) -> dict[str, Any]:
    sample = rule.sample.rstrip()
    text = f"{rule.explanation}\n\n{rule.remedy}\n\nA program with the mistake:\n\n{sample}"
    return {
        "id": rule.code,
        "name": "".join(word[0].upper() + word[1:] for word in re.findall(r"[A-Za-z0-9]+", rule.title)),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.summary},
        "help": {"text": text, "markdown": render_rule_markdown(rule)},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["pytorch", "autograd"]},
    }


def _result(finding: Finding, index: Mapping[str, int], places: _Places) -> dict[str, Any]:
    main = place_to_change(finding, places.own)
    related = [place for place in finding.places if place is not main]
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index[finding.code],
        "level": "error",
        "message": _message(f"{finding.text} {finding.remedy}"),
        "locations": [] if main is None else [places.location(main)],
        "relatedLocations": [
            {"id": number, **places.location(place), "message": _message(_role(place))}
            for number, place in enumerate(related, start=1)
        ],
        "partialFingerprints": {FINGERPRINT: finding.fingerprint},
    }
    if finding.suppression is not None:
        result["suppressions"] = [_suppression(finding.suppression)]
    return result


def _role(place: Place) -> str:
    return f"{place.role} from here" if place.role == CALLED else f"{place.role} here"


def _suppression(why: Suppression) -> dict[str, str]:
    kind, what = ("inSource", "Comment at") if why.kind == "comment" else ("external", "In the baseline")
    reason = f": {why.reason}" if why.reason else ""
    return {"kind": kind, "justification": escape_control(f"{what} {why.place}{reason}")}


def _message(text: str) -> dict[str, str]:
    """Write a text so that nothing in it is taken for a placeholder or a link to another location."""
    harmless = _PLACEHOLDER.sub(r"{{\1}}", escape_control(text))
    return {"text": _LINK.sub(r"\\[", harmless)}
