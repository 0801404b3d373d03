"""Inputs and targets that are turned apart, as findings."""

from msgspec.structs import replace

from gradinspect.checks.facts.targets import TurnedApart
from gradinspect.checks.rules.targets.turned_apart import apart_findings
from gradinspect.graph import Frame

FIRST = Frame(file="train.py", line=3, code="first")
SECOND = Frame(file="train.py", line=4, code="second")


def test_both_lines_are_named_or_the_only_one() -> None:
    """With how often either side was turned."""
    fact = TurnedApart(num_inputs=7, num_targets=9, num_apart=8, num_calls=12, first=FIRST, second=SECOND, used=SECOND)
    (found,) = apart_findings(fact)
    (other,) = apart_findings(replace(fact, second=FIRST))

    assert found.text.startswith("train.py:3 and train.py:4 flip, turn or shift inputs and targets")
    assert "in 8 of 12 batches it was not done to both alike" in found.text
    assert "7 such calls came to the inputs and 9 to the targets" in found.text
    assert found.remedy.startswith("Draw once for both at train.py:3 and train.py:4: put")
    assert [place.role for place in found.places] == ["turned", "turned", "loss"]
    assert other.remedy.startswith("Draw once for both at train.py:3: put")
    assert [place.role for place in other.places] == ["turned", "loss"]
