"""Positions along the batch, as findings."""

from gradinspect.checks.facts.axes import BatchPositions
from gradinspect.checks.rules.axes.batch_positions import position_findings
from gradinspect.graph import Frame

FIRST = Frame(file="train.py", line=3, code="first")
USED = Frame(file="train.py", line=7, code="used")


def test_the_table_is_sliced_by_the_length() -> None:
    """At the line that adds it."""
    (found,) = position_findings(BatchPositions(shape=(4, 6, 8), table=(4, 1, 8), num_calls=2, added=FIRST, used=USED))

    assert "all 6 places of a sequence get the same entry" in found.text
    assert found.remedy.startswith("At train.py:3, slice the table by x.size(1)")
    assert [(place.role, place.line) for place in found.places] == [("added", 3), ("attention", 7)]
