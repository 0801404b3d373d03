"""What is said of new values that are assigned to the variable of a loop."""

from gradinspect.checks.facts.training import ForgottenAssignment
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame


def test_the_values_are_to_be_written_into_the_tensor() -> None:
    """As the program computes them."""
    assigned = Frame(file="ema.py", line=5, code="a = 0.9 * a + 0.1 * p")
    (finding,) = findings_on(ForgottenAssignment(name="a", value="0.9 * a + 0.1 * p", assigned=assigned))

    assert finding.code == "GI307"
    assert "makes a new tensor and calls it a, which nothing reads" in finding.text
    assert finding.remedy.endswith("with torch.no_grad(): a.copy_(0.9 * a + 0.1 * p)")
    assert [(place.role, place.line) for place in finding.places] == [("assigned", 5)]
