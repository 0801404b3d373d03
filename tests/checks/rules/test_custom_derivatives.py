"""What gradcheck said of custom Functions, in words."""

import pytest

from gradinspect.checks.rules.custom_derivatives import CheckedFunction, Slope, derivative_findings, unchecked_notes
from gradinspect.graph import Frame

APPLIED = Frame(file="train.py", line=20, code="y = Cube.apply(x)")
DEFINED = Frame(file="cube.py", line=8, code="def backward(ctx, grad):")


def test_a_wrong_backward_names_the_argument_and_both_lines() -> None:
    """Only the slopes that differ are told."""
    slopes = (
        Slope(argument="x", measured=3.0, claimed=2.0),
        Slope(argument="scale", measured=1.0, claimed=1.000001),
    )
    function = CheckedFunction(name="Cube", verdict="wrong", slopes=slopes, applied=APPLIED, defined=DEFINED)
    (found,) = derivative_findings([function])

    assert found.code == "GI201"
    assert [(place.role, place.line) for place in found.places] == [("applied", 20), ("defined", 8)]
    assert found.text.endswith("Slopes in a random direction: x: measured 3, backward says 2.")
    assert found.remedy.startswith("Correct the gradient of x at cube.py:8.")


def test_without_slopes_torch_has_the_word() -> None:
    """As for complex numbers."""
    function = CheckedFunction(name="Cube", verdict="wrong", reason="Jacobian mismatch for output 0")
    (found,) = derivative_findings([function])

    assert found.text.endswith("in double precision. Jacobian mismatch for output 0")
    assert found.remedy.startswith("Correct each formula at a line that was not seen.")


def test_a_double_backward_has_a_code_of_its_own() -> None:
    """And says what lacks."""
    function = CheckedFunction(name="Exp", verdict="wrong twice", reason="It fails.", defined=DEFINED)
    (found,) = derivative_findings([function])

    assert found.code == "GI202"
    assert "Exp.backward is right, but its own derivative is not" in found.text


def test_the_others_are_no_findings() -> None:
    """What is right is not mentioned; what was not checked is, with the reason."""
    right = CheckedFunction(name="Swish", verdict="right")
    unchecked = CheckedFunction(name="Noise", verdict="unchecked", reason="it gives other numbers each time")

    assert list(derivative_findings([right, unchecked])) == []
    assert unchecked_notes([right, unchecked]) == ("Noise was not checked: it gives other numbers each time.",)


@pytest.mark.parametrize(
    ("measured", "claimed", "is_wrong"),
    [(1.0, 1.005, False), (1.0, 1.1, True), (0.0, 1e-6, False), (0.0, 0.1, True), (1.0, float("nan"), True)],
)
def test_slopes_are_compared_as_far_as_differences_can_be_trusted(
    measured: float, claimed: float, is_wrong: bool
) -> None:
    """One part in a hundred; NaN is never right."""
    assert Slope(argument="x", measured=measured, claimed=claimed).is_wrong == is_wrong
