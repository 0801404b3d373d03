"""Inputs that are divided by 255 twice, as findings."""

from gradinspect.checks.facts.values import RescaledInputs
from gradinspect.checks.rules.targets.rescaled_inputs import rescaled_findings
from gradinspect.graph import Frame


def test_the_division_and_what_is_left_are_named() -> None:
    """The second division is the line to change."""
    divided, used = Frame(file="data.py", line=4, code="x / 255"), Frame(file="train.py", line=9, code="net(x)")
    fact = RescaledInputs(most=0.996, spread=0.0039, num_calls=8, divided=divided, used=used)
    (found,) = rescaled_findings(fact)

    assert found.text.startswith("What data.py:4 divides by 255 lies between 0 and 0.996 already")
    assert found.text.endswith("lie no further apart than 0.0039.")
    assert [(place.role, place.line) for place in found.places] == [("divided", 4), ("layer", 9)]
    assert found.remedy == "Leave out the division at data.py:4, or the one before it."
