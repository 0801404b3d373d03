"""Losses that one output for every input makes smallest, as findings."""

from gradinspect.checks.facts.objectives import CollapsedOutputs
from gradinspect.checks.rules.terms.collapsed_outputs import collapsed_findings
from gradinspect.graph import Frame

SIMILAR = Frame(file="train.py", line=3, code="return -F.cosine_similarity(p, z).mean()")
BACKWARD = Frame(file="train.py", line=9, code="loss.backward()")


def test_the_line_of_the_similarity_is_to_be_changed() -> None:
    """It is the cause, and backward is named as well."""
    (found,) = collapsed_findings(CollapsedOutputs(num_calls=4, made=(SIMILAR,), backward=BACKWARD))

    assert found.text.startswith("In each of 4 calls, the loss was the negative of similarities (train.py:3)")
    assert found.remedy.startswith("At train.py:3, detach the side that is to be predicted")
    assert [place.role for place in found.places] == ["compared", "backward"]
