"""Values of each example along a row, as findings."""

from gradinspect.checks.facts.axes import SpreadAlongRow
from gradinspect.checks.rules.axes.spread_values import spread_findings
from gradinspect.graph import Frame

FIRST = Frame(file="train.py", line=3, code="first")
USED = Frame(file="train.py", line=7, code="used")


def test_an_axis_for_each_further_one() -> None:
    """Of the other factor."""
    flat = SpreadAlongRow(op="mul", shape=(6, 6), num_calls=2, looked_up=USED, used=USED)
    images = SpreadAlongRow(op="mul", shape=(6, 3, 6, 6), num_calls=2, looked_up=FIRST, used=USED)
    (first,), (second,) = spread_findings(flat), spread_findings(images)

    assert first.text.startswith("6 values, one for each example, multiply [6, 6] along its last axis")
    assert first.remedy == "At train.py:7, index what was looked up with [:, None]."
    assert second.remedy == "At train.py:3, index what was looked up with [:, None, None, None]."
    assert [place.line for place in second.places] == [3, 7]
