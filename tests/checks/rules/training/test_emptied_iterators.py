"""What is said of an iterator that a clipping function was given too late."""

from gradinspect.checks.facts.training import EmptiedIterator
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame


def test_a_list_is_to_be_made_where_the_iterator_is() -> None:
    """If that line is known."""
    made, clipped = (Frame(file="train.py", line=line, code="...") for line in (3, 8))
    (known,) = findings_on(EmptiedIterator(name="ps", value="net.parameters()", made=made, clipped=clipped))
    (unknown,) = findings_on(EmptiedIterator(name="ps", value="", clipped=clipped))

    assert known.text.startswith("train.py:8 clips nothing: ps is an iterator")
    assert known.remedy == "Make a list at train.py:3: ps = list(net.parameters())."
    assert unknown.remedy == "Make a list of the parameters before ps is first used, and pass that at train.py:8."
    assert [(place.role, place.line) for place in known.places] == [("made", 3), ("clipped", 8)]
