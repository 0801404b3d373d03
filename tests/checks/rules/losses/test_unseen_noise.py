"""What is said of noise that the input does not contain, on a fact made by hand."""

from gradinspect.checks.facts.objectives import UnseenNoise
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame


def test_all_three_lines_are_named() -> None:
    """Where noise is mixed into the input, where the other noise is drawn, and where it is the target."""
    mixed, drawn, used = (Frame(file="ddpm.py", line=line) for line in (3, 4, 6))
    (finding,) = findings_on(UnseenNoise(mixed=mixed, drawn=drawn, used=used))

    assert [(place.role, place.line) for place in finding.places] == [("mixed", 3), ("drawn", 4), ("used", 6)]
    assert finding.remedy == "Draw the noise once, and use the same tensor at ddpm.py:3 and ddpm.py:6."


def test_noise_is_passed_on_where_the_function_is_called_that_mixes_it() -> None:
    """Where that is another function than the one that draws."""
    lines = [Frame(file="ddpm.py", line=line) for line in (3, 4, 6, 9)]
    (finding,) = findings_on(UnseenNoise(mixed=lines[0], called=lines[3], drawn=lines[1], used=lines[2]))

    assert [(place.role, place.line) for place in finding.places][1] == ("called", 9)
    assert finding.remedy.endswith("at ddpm.py:3 and ddpm.py:6: pass it on at ddpm.py:9.")
