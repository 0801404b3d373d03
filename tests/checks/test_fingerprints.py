"""Fingerprints of findings made by hand: what changes them, and what does not."""

from factories import make_finding
from msgspec.structs import replace

from gradinspect.checks.findings import Finding, Place, ProgramFile
from gradinspect.checks.fingerprints import with_fingerprints


def prints(*findings: Finding, folder: str = "", comments: tuple[tuple[int, str], ...] = ()) -> list[str]:
    """Return the fingerprints of findings in one run."""
    files = [ProgramFile(name="train.py", path="/somewhere/train.py", comments=comments)]
    return [one.fingerprint for one in with_fingerprints(findings, files, lambda file: f"{folder}{file}")]


def on(*places: tuple[str, int, str], code: str = "GI101", function: str = "train") -> Finding:
    """A finding on lines: role, number, text."""
    made = tuple(
        Place(role=role, file="train.py", line=line, code=text, function=function) for role, line, text in places
    )
    return replace(make_finding(code), text=f"seen {places}", places=made, remedy=f"line {places[0][1]}")


SAVED, WRITTEN = ("saved", 3, "y = x.exp()"), ("written", 4, "y += 1")


def test_a_fingerprint_does_not_move_with_its_line() -> None:
    """Nor change with what we say about it."""
    moved = on(("saved", 30, "y = x.exp()"), ("written", 44, "y += 1"))

    assert prints(on(SAVED, WRITTEN)) == prints(moved)


def test_comments_and_spaces_do_not_count() -> None:
    """An ignore comment is written, a formatter runs."""
    commented = on(SAVED, ("written", 4, "y+=1  # gradinspect: ignore[GI102]"))

    assert prints(commented, comments=((4, "# gradinspect: ignore[GI102]"),)) == prints(on(SAVED, WRITTEN))


def test_where_it_is_found_does_not_count() -> None:
    """The training loop, and the caller of a helper, unless nothing else is named."""
    loop, other = ("backward", 9, "loss.backward()"), ("backward", 9, "scaler.scale(loss).backward()")

    assert prints(on(SAVED, loop)) == prints(on(SAVED, other, ("called", 1, "main()"), ("step", 10, "opt.step()")))
    assert prints(on(loop)) != prints(on(other))


def test_what_makes_two_findings_different() -> None:
    """The code, the text of any other line, its function, its file in the project."""
    base = on(SAVED, WRITTEN)
    others = [
        on(SAVED, WRITTEN, code="GI103"),
        on(SAVED, ("written", 4, "y += 2")),
        on(("saved", 3, "y = x.sin()"), WRITTEN),
        on(SAVED, WRITTEN, function="evaluate"),
    ]
    found = [*prints(base), *(one for other in others for one in prints(other)), *prints(base, folder="old/")]

    assert len(set(found)) == len(found)


def test_equal_findings_are_numbered_by_line() -> None:
    """In whichever order they were found."""
    first, second = on(("saved", 3, "y = x.exp()")), on(("saved", 8, "y = x.exp()"))
    (one,) = prints(first)

    assert prints(second, first) == [f"{one}:2", one]


def test_an_odd_name_is_no_error() -> None:
    """A file name that is not UTF-8."""
    assert len(prints(on(SAVED), folder="\udcff")[0]) == 16
