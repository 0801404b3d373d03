"""Terms that are added more than once, as findings."""

from gradinspect.checks.facts.objectives import RepeatedTerm
from gradinspect.checks.rules.terms.repeated_terms import repeated_findings
from gradinspect.graph import Frame

TERM = Frame(file="train.py", line=3, code="ce = criterion(out, y)")
AGAIN = Frame(file="train.py", line=7, code="loss += criterion(out, y)")


def test_one_tensor_and_one_computation_are_told_apart() -> None:
    """The advice names the last line that adds the term."""
    (one,) = repeated_findings(RepeatedTerm(count=3, first=TERM, used=(TERM, AGAIN)))
    (two,) = repeated_findings(RepeatedTerm(count=2, first=TERM, again=AGAIN, used=(AGAIN,)))

    assert one.text == "What train.py:3 computes is added to the loss 3 times, at train.py:3 and train.py:7."
    assert one.remedy == "Add it once: take it out of train.py:7, or multiply it by 3 if that is meant."
    assert "train.py:7 computes the same again from the same tensors" in two.text
    assert [place.role for place in two.places] == ["term", "again", "added"]
