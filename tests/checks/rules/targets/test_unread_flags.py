"""A flag that no target reads, as a finding."""

from gradinspect.checks.facts.targets import UnreadFlag
from gradinspect.checks.rules.targets.unread_flags import unread_findings
from gradinspect.graph import Frame

MADE = Frame(file="train.py", line=3, code="made")
ADDED = Frame(file="train.py", line=7, code="added")


def test_the_flag_and_the_sum_are_named() -> None:
    """What the flag means is for the program to know."""
    fact = UnreadFlag(name="batch.done", num_ends=5, num_rows=100, num_calls=9, made=MADE, added=ADDED, used=ADDED)
    (found,) = unread_findings(fact)

    assert "batch.done of the same batch is 1 in 5% of the rows and 0 in the others" in found.text
    assert found.remedy.startswith("If batch.done says where an episode has ended, multiply")
    assert found.remedy.endswith("by (1 - batch.done) at train.py:7.")
    assert [(place.role, place.line) for place in found.places] == [("target", 7), ("made", 3)]
