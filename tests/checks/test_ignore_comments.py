"""Ignore comments, read from text and applied to findings made by hand."""

import pytest
from factories import make_finding

from gradinspect.checks.findings import IgnoreComment
from gradinspect.checks.ignore_comments import comment_notes, ignore_comments, without_ignored

KNOWN = ("GI101", "GI102", "GI301")


def read(text: str, *seen: int) -> tuple[IgnoreComment, ...]:
    """Read the comments of `train.py`."""
    return ignore_comments("train.py", text.splitlines(keepends=True), seen)


@pytest.mark.parametrize(
    ("text", "codes", "reason"),
    [
        ("x  # gradinspect: ignore[GI301]", ("GI301",), ""),
        ("x  # gradinspect: ignore[GI301] frozen on purpose", ("GI301",), "frozen on purpose"),
        ("x  # gradinspect: ignore[GI301, gi102,]: both", ("GI301", "GI102"), "both"),
        ("x  #gradinspect:ignore[GI301]", ("GI301",), ""),
        ("x  # noqa: E501  # gradinspect: ignore[GI301] long  # type: ignore", ("GI301",), "long"),
        ("x  # gradinspect: ignore", (), ""),
        ("x  # gradinspect: ignore[] why", (), "why"),
    ],
)
def test_what_a_comment_says(text: str, codes: tuple[str, ...], reason: str) -> None:
    """Its codes and its reason, beside comments for other tools."""
    (one,) = read(text)

    assert (one.codes, one.reason) == (codes, reason)


@pytest.mark.parametrize(
    "text",
    [
        "x = '# gradinspect: ignore[GI301]'",
        '"""\n# gradinspect: ignore[GI301]\n"""',
        "x  # gradinspect ignores GI301",
        "x  # gradinspect: ignored[GI301]",
        "x  # see gradinspect: ignore[GI301]",
    ],
)
def test_what_is_no_ignore_comment(text: str) -> None:
    """Strings, and prose."""
    assert read(text) == ()


def test_a_comment_ignores_its_code_on_any_line_that_a_finding_names() -> None:
    """Also from another line of the statement, or alone above it; the reason is kept."""
    comments = read("a\nb(  # gradinspect: ignore[GI101] here\n)\n# gradinspect: ignore[GI301]\nc\n")
    on_first, on_second = make_finding("GI101", 1, 3), make_finding("GI301", 5)
    other_code, other_line = make_finding("GI102", 3), make_finding("GI101", 1)
    ignored = without_ignored((on_first, on_second, other_code, other_line), comments)

    assert ignored.reported == (other_code, other_line)
    whys = [finding.suppression for finding in ignored.suppressed]
    assert [(why.kind, why.place, why.reason) for why in whys if why] == [
        ("comment", "train.py:2", "here"),
        ("comment", "train.py:4", ""),
    ]


def test_a_comment_of_another_file_ignores_nothing() -> None:
    """Lines are those of one file."""
    (comment,) = ignore_comments("model.py", ["x  # gradinspect: ignore[GI101]"], ())

    assert without_ignored((make_finding("GI101", 1),), [comment]).suppressed == ()


def notes(text: str, *seen: int, can_find: bool = True) -> list[str]:
    """Return the notes on the comments of a file in which GI101 is found on line 1."""
    comments = read(text, *seen)
    ignored = without_ignored((make_finding("GI101", 1),), comments)
    return list(comment_notes(comments, ignored, KNOWN, lambda code: can_find))


def test_an_unused_comment_is_reported_by_code() -> None:
    """If its line has run; the code that was found is not named."""
    assert notes("x  # gradinspect: ignore[GI101, GI301]\n", 1) == [
        "train.py:1: unused 'gradinspect: ignore[GI301]': no GI301 was found there. Remove it."
    ]


def test_a_comment_may_be_needed_in_another_run() -> None:
    """Its line did not run, or this run could not have found it."""
    assert notes("x\nif x:\n    y  # gradinspect: ignore[GI301]\n", 1) == []
    assert notes("x\ny  # gradinspect: ignore[GI301]\n", 2, can_find=False) == []


def test_a_comment_without_a_code_ignores_nothing() -> None:
    """It is told the code that was found there."""
    assert notes("x  # gradinspect: ignore\n") == [
        "train.py:1: 'gradinspect: ignore' names no code, so it ignores nothing. Write: gradinspect: ignore[GI101]"
    ]


def test_an_unknown_code_is_reported() -> None:
    """With the closest one, whether or not the line has run."""
    assert notes("x\ny  # gradinspect: ignore[GI31]\n") == [
        "train.py:2: no rule has the code 'GI31', so 'gradinspect: ignore[GI31]' ignores nothing. Closest match: GI301."
    ]
