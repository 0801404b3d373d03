"""One column of gradients for several outputs, as a finding."""

from gradinspect.checks.facts.values import SummedColumns
from gradinspect.checks.rules.losses.summed_columns import summed_columns_findings
from gradinspect.graph import Frame


def test_both_lines_are_named() -> None:
    """The one that takes the gradient, and the one that uses it."""
    graded, used = (
        Frame(file="pinn.py", line=3, code="rate = grad(u, t)"),
        Frame(file="pinn.py", line=7, code="rate - u"),
    )
    (found,) = summed_columns_findings(SummedColumns(shape=(96, 3), graded=graded, used=used))

    assert "is the sum of the gradients of 3 columns. pinn.py:7 broadcasts it against [96, 3]" in found.text
    assert found.remedy.startswith("At pinn.py:3, take the gradient of each column alone")
    assert [(place.role, place.line) for place in found.places] == [("gradient", 3), ("used", 7)]
