"""Which findings of a run are reported."""

import pytest
from factories import make_finding

from gradinspect.checks.baseline import Baseline, Known
from gradinspect.checks.findings import Findings, IgnoreComment, ProgramFile
from gradinspect.checks.verdict import Selection, can_find, without_comments, without_known

FILE = ProgramFile(
    name="train.py",
    path="/p/train.py",
    ignores=(
        IgnoreComment(file="train.py", line=3, first=3, last=3, codes=("GI101",), reason="frozen", has_run=True),
        IgnoreComment(file="train.py", line=9, first=9, last=9, codes=("GI102",), has_run=True),
    ),
)


def run(*codes: str, **fields: object) -> Findings:
    """Make the findings of a run, each on line 3."""
    values: dict[str, object] = {"source": "train.py", "num_calls": 1, "files": (FILE,), **fields}
    return Findings(findings=tuple(make_finding(code, 3) for code in codes), **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("selection", "codes"),
    [
        (Selection(), ["GI101", "GI301"]),
        (Selection(("GI1",)), ["GI101"]),
        (Selection((), ("GI10",)), ["GI301"]),
        (Selection(("GI1", "GI3"), ("GI301",)), ["GI101"]),
    ],
)
def test_a_selection_has_codes_by_their_beginnings(selection: Selection, codes: list[str]) -> None:
    """What is skipped is not reported, whatever is selected."""
    assert [code for code in ("GI101", "GI301") if selection.has(code)] == codes


def test_what_a_run_could_have_found() -> None:
    """A known code that is selected, of a run that is complete; some need an option or several ranks."""
    complete, partial = run(is_complete=True), run(is_complete=False)
    ranks = run(is_complete=True, num_ranks=2)

    assert can_find(complete, Selection())("GI101")
    assert not can_find(partial, Selection())("GI101")
    assert not can_find(complete, Selection(("GI3",)))("GI101")
    assert not can_find(complete, Selection())("GI999")
    assert [can_find(complete, Selection(gradcheck=asked))("GI201") for asked in (False, True)] == [False, True]
    assert [can_find(one, Selection())("GI901") for one in (complete, ranks)] == [False, True]


def test_comments_take_out_findings_and_those_without_use_are_named() -> None:
    """Each finding that is left or taken out has its fingerprint; notes of the run come first."""
    found = without_comments(run("GI101", "GI103", is_complete=True, notes=("first",)), Selection(), str.upper)

    assert [one.code for one in found.findings] == ["GI103"]
    assert [(one.code, one.suppression and one.suppression.reason) for one in found.suppressed] == [("GI101", "frozen")]
    assert all(one.fingerprint for one in (*found.findings, *found.suppressed))
    assert found.notes == (
        "first",
        "train.py:9: unused 'gradinspect: ignore[GI102]': no GI102 was found there. Remove it.",
    )


def test_a_baseline_takes_out_what_it_has_and_what_it_no_longer_needs_is_named() -> None:
    """With its line as it was written."""
    found = without_comments(run("GI103", "GI104", is_complete=True, files=()), Selection(), str)
    known = Known(fingerprint=found.findings[0].fingerprint, code="GI103")
    gone = [Known(fingerprint="x", code="GI101", file="train.py", line=7), Known(fingerprint="y", code="GI102")]
    baseline = Baseline(programs={"train.py": (known, *gone)})
    left = without_known(found, Selection(), baseline, program="train.py", name="known.json")
    other = without_known(found, Selection(), Baseline(programs={}), program="train.py", name="known.json")

    assert [one.code for one in left.findings] == ["GI104"]
    assert [one.code for one in left.suppressed] == ["GI103"]
    assert left.notes == ("No longer needed in known.json: GI101 train.py:7, GI102. --write-baseline removes them.",)
    assert (other.notes, len(other.findings)) == ((), 2)
