"""One entry for all places, as findings."""

from gradinspect.checks.facts.axes import SamePlaces
from gradinspect.checks.rules.axes.same_places import same_findings
from gradinspect.graph import Frame

MADE = Frame(file="train.py", line=3, code="made")
USED = Frame(file="train.py", line=7, code="used")


def test_the_index_is_the_cause() -> None:
    """Where it is made."""
    (found,) = same_findings(SamePlaces(value=5, num_entries=16, tokens=(4, 6), num_calls=3, made=MADE, looked_up=USED))

    assert "it was 5 in the last one: all places of the tokens [4, 6] get the same of 16 entries" in found.text
    assert [(place.role, place.line) for place in found.places] == [("made", 3), ("used", 7)]
