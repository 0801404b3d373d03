"""Baselines of findings made by hand."""

import pytest
from factories import make_finding
from msgspec.structs import replace

from gradinspect.checks.baseline import Baseline, compared, read_baseline, updated, write_baseline
from gradinspect.checks.findings import Finding

EMPTY = Baseline(programs={})


def found(fingerprint: str, code: str = "GI101") -> Finding:
    """A finding with a fingerprint."""
    return replace(make_finding(code, 3), fingerprint=fingerprint)


def written(baseline: Baseline, *findings: Finding, program: str = "train.py", can_find: bool = True) -> Baseline:
    """Write the findings of a program."""
    return updated(
        baseline, findings, program=program, path_of=lambda file: f"src/{file}", can_find=lambda code: can_find
    )


def test_known_findings_are_not_reported() -> None:
    """New ones are."""
    baseline = written(EMPTY, found("a"))
    result = compared((found("a"), found("b")), baseline, program="train.py", name="x.json", can_find=lambda code: True)

    assert [one.fingerprint for one in result.reported] == ["b"]
    assert [one.suppression and one.suppression.place for one in result.suppressed] == ["x.json"]
    assert result.vanished == ()


@pytest.mark.parametrize(("program", "can_find", "vanished"), [
    ("train.py", True, ["b"]),
    ("train.py", False, []),  # it may still be there
    ("other.py", True, []),  # it is no business of this program
])  # fmt: skip
def test_what_vanished_is_named(program: str, can_find: bool, vanished: list[str]) -> None:
    """If this run would have found it."""
    baseline = written(EMPTY, found("a"), found("b"))
    result = compared((found("a"),), baseline, program=program, name="x.json", can_find=lambda code: can_find)

    assert [one.fingerprint for one in result.vanished] == vanished
    assert [one.fingerprint for one in result.suppressed] == ["a"]


def test_a_program_replaces_its_own_findings() -> None:
    """Those of another stay; a program without findings has no entry."""
    both = written(written(EMPTY, found("a")), found("b"), program="eval.py")

    assert list(written(both, found("c")).programs) == ["eval.py", "train.py"]
    assert [one.fingerprint for one in written(both, found("c")).programs["train.py"]] == ["c"]
    assert list(written(both).programs) == ["eval.py"]


def test_what_this_run_cannot_find_stays() -> None:
    """With `--select` of other codes, or in a run that failed."""
    before = written(EMPTY, found("a"))

    assert [one.fingerprint for one in written(before, found("b"), can_find=False).programs["train.py"]] == ["a", "b"]


def test_a_file_is_read_back() -> None:
    """And names the line, for whoever reads it."""
    baseline = written(EMPTY, found("a"))
    (entry,) = baseline.programs["train.py"]

    assert read_baseline(write_baseline(baseline)) == baseline
    assert (entry.code, entry.file, entry.line, entry.text) == ("GI101", "src/train.py", 3, "line 3")


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b"\xff", b'{"format": "x", "version": 1, "programs": {}}', b"[" * 5000]
)
def test_anything_else_is_no_baseline(content: bytes) -> None:
    """Nothing is guessed."""
    assert read_baseline(content) is None
