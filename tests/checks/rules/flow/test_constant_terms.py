"""Terms of a loss without a gradient, judged on facts made by hand."""

from gradinspect.checks.facts.values import ConstantTerm
from gradinspect.checks.rules.flow.constant_terms import constant_findings
from gradinspect.graph import Frame


def test_the_words_name_both_lines() -> None:
    """Where it was detached, and where it is added."""
    cut, used, backward = (Frame(file="train.py", line=number) for number in (3, 5, 7))
    (found,) = constant_findings(ConstantTerm(op="data", cause="data", cut=cut, used=used, backward=backward))

    assert [(place.role, place.line) for place in found.places] == [("detached", 3), ("used", 5), ("backward", 7)]
    assert found.text.startswith(
        "What train.py:5 adds to the loss has no graph: .data returns the values without their"
    )
    assert found.text.endswith("Backward treats it as a constant, so it changes no gradient.")
    assert "train.py:3" in found.remedy
