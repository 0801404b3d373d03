"""Attention along the wrong axis, as a finding."""

from gradinspect.checks.facts.axes import OtherAxis
from gradinspect.checks.rules.axes.other_axes import other_axis_findings
from gradinspect.graph import Frame


def test_the_softmax_is_the_line_to_change() -> None:
    """The product is named beside it."""
    softmax, product = (Frame(file="model.py", line=line, code="code") for line in (5, 7))
    (finding,) = other_axis_findings(OtherAxis(shape=(2, 6, 6), num_calls=3, applied=softmax, used=product))

    assert finding.text.startswith(
        "softmax makes the weights [2, 6, 6] add up to one along axis -2, and the product at "
    )
    assert "model.py:7 sums over their last axis, in each of 3 calls" in finding.text
    assert (finding.remedy or "").startswith("At model.py:5, apply softmax along the last axis: dim=-1.")
    assert [place.line for place in finding.places] == [5, 7]
