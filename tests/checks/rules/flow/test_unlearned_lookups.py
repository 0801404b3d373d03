"""What is said of lookups that cut the gradient of a code, on a fact made by hand."""

import pytest

from gradinspect.checks.facts.objectives import UnlearnedLookup
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame


@pytest.mark.parametrize(
    ("coded", "looked_up", "words"),
    [
        ("code = encoder(x)", "entry = table(i)", "code + (entry - code).detach() instead of entry"),
        ("return self.net(x)", "return self.table(i)", "z + (q - z).detach() instead of q"),
        ("z = encoder(x)", "z = table(i)", "z + (q - z).detach() instead of q"),
    ],
)
def test_the_estimator_is_written_with_the_programs_names(coded: str, looked_up: str, words: str) -> None:
    """As far as the lines assign variables, and not the same one."""
    lines = {"coded": Frame(file="vq.py", line=3, code=coded), "looked_up": Frame(file="vq.py", line=5, code=looked_up)}
    (finding,) = findings_on(UnlearnedLookup(op="argmin", used=Frame(file="vq.py", line=6), **lines))

    assert finding.remedy.startswith(f"Give the layers {words}, which has the value of")
    assert [place.role for place in finding.places] == ["looked up", "used"]
