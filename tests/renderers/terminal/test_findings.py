"""Findings as a page and as annotations, whatever the program is called and its lines say."""

import json

import pytest
from msgspec.structs import replace

from gradinspect.checks.findings import Finding, Findings, Place, Suppression
from gradinspect.checks.registry import codes, rule_of
from gradinspect.renderers.data.findings.findings import FINDINGS, render_findings_github
from gradinspect.renderers.data.table import render_figures
from gradinspect.renderers.terminal.findings import FindingsPage

HOSTILE = "x = '\x1b[2J\u202e' # 100% [red], \r\n::error::"


def found(*notes: str, code: str = "loss.backward()", findings: int = 1) -> Findings:
    """A finding on two lines."""
    places = (
        Place(role="saved", file="train.py", line=3, code="y = x.exp()"),
        Place(role="written", file="train.py", line=4, code=code),
    )
    one = Finding(
        code="GI101",
        title="changed in place",
        text=f"It was {code}. " * 4,
        places=places,
        remedy=f"Write {code} again.",
    )
    return Findings(source=f"train.py {code}", num_calls=2, findings=(one,) * findings, notes=notes)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_page_is_as_wide_as_asked(width: int) -> None:
    """Every line of findings and notes, and nothing in it that a terminal obeys."""
    page = FindingsPage(width=width)
    lines = [line.plain for line in page.lines(found(f"Noise was not checked: {HOSTILE}.", code=HOSTILE))]

    assert all(len(line) <= width for line in lines[:-1])
    assert all(line.isprintable() for line in lines)


def test_notes_stand_before_the_verdict() -> None:
    """They are no findings, so nothing else changes."""
    lines = [line.plain for line in FindingsPage().lines(found("Noise was not checked: it is random.", findings=0))]

    assert lines == [
        "Noise was not checked: it is random.",
        "No problems found in 2 backward calls of train.py loss.backward()",
    ]


def test_json_has_everything() -> None:
    """As it is, for another program."""
    document = json.loads(render_figures(found("a note", code=HOSTILE), FINDINGS))

    assert document["findings"][0]["places"][1] == {
        "role": "written", "file": "train.py", "line": 4, "code": HOSTILE, "function": "",
    }  # fmt: skip
    assert document["notes"] == ["a note"]
    assert "files" not in document


def test_what_is_not_reported_is_counted() -> None:
    """By its reason, before a verdict that says so."""
    by_comment, known = Suppression(kind="comment", place="a.py:3"), Suppression(kind="baseline", place="b.json")
    one = found().findings[0]
    suppressed = tuple(replace(one, suppression=why) for why in (by_comment, known, known))
    nothing = replace(found(findings=0), suppressed=suppressed)

    assert [line.plain for line in FindingsPage(width=100).lines(nothing)] == [
        "Not reported: 1 ignored by comments, 2 known from b.json.",
        "No other problems found in 2 backward calls of train.py loss.backward()",
    ]


def test_a_note_is_a_notice() -> None:
    """For GitHub, after the findings, and escaped like them."""
    *_, line = render_findings_github(found("50% of\nit"), str).splitlines()

    assert line == "::notice::50%25 of%0Ait"


def test_an_annotation_is_one_line_whatever_it_says() -> None:
    """Beside the line that wrote; a line end or a percent sign of the program cannot begin a command of its own."""
    text = render_findings_github(found(code=HOSTILE), lambda file: f"src/{file}")

    assert text.count("\n") == 1
    assert "\r" not in text
    assert text.startswith(
        "::error file=src/train.py,line=4,title=GI101 changed in place::saved: src/train.py:3  y = x"
    )
    assert "100%25" in text


@pytest.mark.parametrize("code", codes())
def test_every_rule_fits_a_terminal(code: str) -> None:
    """Its headline, text, sample and remedy, at 80 columns; the sample is shown as a change to its repaired form."""
    rule = rule_of(code)
    lines = [line.plain for line in FindingsPage(width=80).rule(rule)]

    assert all(len(line) <= 80 for line in lines)
    assert lines[0].startswith(f"{code}  ")
    assert f"    $ {rule.command} sample.py" in lines
    assert any(line.startswith(("  - ", "  + ")) for line in lines)
