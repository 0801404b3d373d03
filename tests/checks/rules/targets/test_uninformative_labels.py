"""Labels that say nothing, as findings."""

from gradinspect.checks.facts.targets import EqualLabels, OwnLabels
from gradinspect.checks.rules.targets.uninformative_labels import equal_findings, own_findings
from gradinspect.graph import Frame

FIRST = Frame(file="train.py", line=3, code="first")
USED = Frame(file="train.py", line=7, code="used")


def test_labels_of_one_value_are_counted() -> None:
    """At the line that makes them, if it is known."""
    fact = EqualLabels(loss="cross_entropy", value=0, num_labels=1024, num_calls=6, made=FIRST, used=USED)
    (found,) = equal_findings(fact)

    assert found.text == "All 1,024 labels that cross_entropy got in 6 calls are 0."
    assert "train.py:3" in found.remedy
    assert [(place.role, place.line) for place in found.places] == [("labels", 3), ("loss", 7)]


def test_the_labels_of_the_data_are_passed_instead() -> None:
    """Where the loss is called."""
    (found,) = own_findings(OwnLabels(op="argmax", num_calls=6, made=USED, used=USED))

    assert found.text.startswith("In each of 6 calls, the labels are the argmax of the very scores")
    assert found.remedy == "At train.py:7, pass the labels of the data."
    assert len(found.places) == 1
