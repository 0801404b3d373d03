"""What is said of values that an initialization has overwritten, on facts made by hand."""

import pytest

from gradinspect.checks.facts.objectives import FilledPadding, OverwrittenValues
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame

FIRST, SECOND = Frame(file="model.py", line=3), Frame(file="model.py", line=8)


@pytest.mark.parametrize(
    ("count", "words"), [(1, "initializes the matrix that"), (12, "initializes all of the 12 matrices that")]
)
def test_the_two_lines_are_to_change_places(count: int, words: str) -> None:
    """Whatever the number of matrices."""
    (finding,) = findings_on(OverwrittenValues(num_tensors=count, set=FIRST, overwritten=SECOND))

    assert words in finding.text
    assert finding.remedy == "Let model.py:3 run after model.py:8."
    assert [place.role for place in finding.places] == ["set", "init"]


def test_the_padding_row_is_named() -> None:
    """With the line that filled it."""
    (finding,) = findings_on(FilledPadding(row=2, filled=FIRST, used=SECOND))

    assert "padding row 2" in finding.text
    assert "embedding.weight[2] = 0" in finding.remedy
