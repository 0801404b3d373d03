"""What is said of layers whose units are all the same, on facts made by hand."""

import pytest

from gradinspect.checks.facts.training import EqualUnits
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame

SET = Frame(file="model.py", line=3, code="nn.init.constant_(self.weight, 0.1)")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("a.weight",), "All 8 rows of a.weight are equal, and after 3 steps that changed them"),
        (("a.weight", "b.weight"), "The rows of each of a.weight and b.weight are equal"),
    ],
)
def test_the_weights_and_their_line_are_named(names: tuple[str, ...], words: str) -> None:
    """With what makes units different."""
    (finding,) = findings_on(EqualUnits(names=names, num_rows=8, num_steps=3, set=SET))

    assert finding.code == "GI604"
    assert words in finding.text
    assert "with random values at model.py:3" in finding.remedy
    assert finding.subjects == names
