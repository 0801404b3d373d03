"""Findings as SARIF: what the standard demands, what code scanning reads, and nothing that a program can smuggle in."""

import json

import msgspec
import pytest
from factories import make_finding
from msgspec.structs import replace
from sarif_log import Log, Run

from gradinspect.checks.findings import Finding, Findings, Place, ProgramFile, Suppression
from gradinspect.checks.registry import registry
from gradinspect.renderers.data.findings.sarif import render_findings_sarif

RULES = list(registry().rules.values())
CODE = RULES[0].code
HOSTILE = "x = '\x1b[2J\u202e' # {0} [a](1) {x} [b] \r\n"


def written(*findings: Finding, suppressed: tuple[Finding, ...] = (), notes: tuple[str, ...] = ()) -> Run:
    """Write findings, and read them back strictly."""
    found = Findings(
        source="train.py", num_calls=2, findings=findings, suppressed=suppressed, notes=notes,
        files=(ProgramFile(name="train.py", path="/home/me/my project/train.py"),),
    )  # fmt: skip
    text = render_findings_sarif(
        found, RULES, lambda file: f"my project/{file}", version="1.2", program=f"train.py {HOSTILE}"
    )
    assert text.isascii()
    assert all(line.isprintable() for line in text.splitlines())
    (run,) = msgspec.json.decode(text, type=Log).runs
    return run


def test_a_run_without_findings_has_all_rules() -> None:
    """With what a reader shows of them, and the same order as the codes."""
    run = written()
    rules = run.tool.driver.rules

    assert run.results == []
    assert [rule.id for rule in rules] == [one.code for one in RULES]
    assert [rule.short_description.text for rule in rules] == [one.title for one in RULES]
    assert all(len(rule.full_description.text) < 1000 for rule in rules)
    assert all("```diff" in (rule.help.markdown or "") for rule in rules)
    assert len({rule.name for rule in rules}) == len(rules)


def test_a_finding_is_at_the_line_to_change() -> None:
    """The other lines are related; names are relative and encoded, and nothing says where the project is."""
    found = make_finding(CODE, 3, 4, 9)
    first, second, third = found.places
    places = (first, replace(second, role="written"), third)
    (result,) = written(replace(found, places=places, fingerprint="f00d")).results
    (location,) = result.locations

    assert (result.rule_id, result.rule_index) == (CODE, 0)
    assert location.physical_location.artifact_location.uri == "my%20project/train.py"
    assert location.physical_location.artifact_location.uri_base_id == "%SRCROOT%"
    assert location.physical_location.region.start_line == 4
    assert [(one.id, one.physical_location.region.start_line) for one in result.related_locations] == [(1, 3), (2, 9)]
    assert [one.message and one.message.text for one in result.related_locations] == ["saved here"] * 2
    assert result.partial_fingerprints == {"gradinspect/v1": "f00d"}
    assert result.suppressions == []


def test_a_line_of_a_package_is_not_in_the_repository() -> None:
    """It is related; the finding is at a line of the program, where there is one."""
    library = Place(role="written", file="transformers/x.py", line=4, code="y += 1", function="Layer.forward")
    own = Place(role="saved", file="train.py", line=3, code="")
    (result,) = written(replace(make_finding(CODE), places=(own, library))).results
    (related,) = result.related_locations

    assert result.locations[0].physical_location.region.start_line == 3
    assert related.physical_location.artifact_location.uri == "transformers/x.py"
    assert related.physical_location.artifact_location.uri_base_id == "SITEPACKAGES"
    assert related.logical_locations[0].fully_qualified_name == "Layer.forward"


def test_a_finding_without_a_line_has_no_location() -> None:
    """Rather than an invented one."""
    (result,) = written(make_finding(CODE)).results

    assert (result.locations, result.related_locations) == ([], [])


@pytest.mark.parametrize(
    ("why", "kind", "justification"),
    [
        (Suppression(kind="comment", place="train.py:3", reason="frozen"), "inSource", "Comment at train.py:3: frozen"),
        (Suppression(kind="baseline", place="b.json"), "external", "In the baseline b.json"),
    ],
)
def test_what_is_not_reported_is_suppressed(why: Suppression, kind: str, justification: str) -> None:
    """A reader hides it, and knows why."""
    (result,) = written(suppressed=(replace(make_finding(CODE, 3), suppression=why),)).results

    assert [(one.kind, one.justification) for one in result.suppressions] == [(kind, justification)]


def test_notes_are_notifications() -> None:
    """Of the run, not of a line."""
    (invocation,) = written(notes=("Not checked: the rest.",)).invocations

    assert [one.message.text for one in invocation.tool_execution_notifications] == ["Not checked: the rest."]


def test_nothing_in_a_program_is_taken_for_markup() -> None:
    """Neither by a terminal, nor as a placeholder, a link, or part of a URI."""
    place = Place(role="saved", file=f"a b#?{HOSTILE}.py", line=1, code=HOSTILE, function=HOSTILE)
    finding = replace(make_finding(CODE), text=HOSTILE, remedy=HOSTILE, places=(place,))
    (result,) = written(finding, notes=(HOSTILE,)).results

    assert "{{0}}" in result.message.text
    assert "\\[a](1)" in result.message.text
    assert "{x} [b]" in result.message.text
    assert "\\x1b" in result.message.text


def test_a_line_number_is_positive() -> None:
    """As the standard demands; a line of generated code may have none."""
    (result,) = written(make_finding(CODE, 0)).results

    assert result.locations[0].physical_location.region.start_line == 1


def test_the_schema_is_named() -> None:
    """And the version of the standard."""
    found = Findings(source="train.py", num_calls=1, findings=())
    document = json.loads(render_findings_sarif(found, RULES, str, version="1", program="train.py"))

    assert document["$schema"].endswith("/sarif-schema-2.1.0.json")
    assert document["version"] == "2.1.0"
