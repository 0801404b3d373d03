"""What gradcheck found in custom Functions, in words."""

import pytest

from gradinspect.checks.facts.values import CheckedFunction, Slope
from gradinspect.checks.rules.custom_derivatives import derivative_findings
from gradinspect.graph import Frame

APPLIED = Frame(file="train.py", line=20, code="y = Cube.apply(x)")
DEFINED = Frame(file="cube.py", line=8, code="def backward(ctx, grad):")


def test_a_wrong_backward_names_the_argument_and_both_lines() -> None:
    """Only the derivatives that differ are reported."""
    slopes = (
        Slope(argument="x", numeric=3.0, backward=2.0),
        Slope(argument="scale", numeric=1.0, backward=1.000001),
    )
    function = CheckedFunction(name="Cube", verdict="wrong backward", slopes=slopes, applied=APPLIED, defined=DEFINED)
    (found,) = derivative_findings(function)

    assert found.code == "GI201"
    assert [(place.role, place.line) for place in found.places] == [("applied", 20), ("defined", 8)]
    assert found.text.endswith("Directional derivative with respect to x: numeric 3, backward 2.")
    assert found.remedy.startswith("Correct the gradient of x at cube.py:8.")


def test_without_slopes_the_message_of_torch_is_shown() -> None:
    """As for complex numbers."""
    function = CheckedFunction(name="Cube", verdict="wrong backward", reason="Jacobian mismatch for output 0")
    (found,) = derivative_findings(function)

    assert found.text.endswith("in double precision. Jacobian mismatch for output 0")
    assert found.remedy.startswith("Correct each formula at an unknown line.")


def test_a_double_backward_has_a_code_of_its_own() -> None:
    """And says what lacks."""
    function = CheckedFunction(name="Exp", verdict="wrong double backward", reason="It fails.", defined=DEFINED)
    (found,) = derivative_findings(function)

    assert found.code == "GI202"
    assert "Exp.backward is correct, but its own derivative is not" in found.text


def test_the_others_are_no_findings() -> None:
    """A correct one is not mentioned; one that was not checked is, with the reason."""
    right = CheckedFunction(name="Swish", verdict="correct")
    unchecked = CheckedFunction(name="Noise", verdict="not checked", reason="its results differ from call to call")

    wrong = CheckedFunction(name="Cube", verdict="wrong backward")

    assert [*derivative_findings(right), *derivative_findings(unchecked)] == []
    assert [found.subjects for found in derivative_findings(wrong)] == [("Cube",)]


@pytest.mark.parametrize(
    ("numeric", "backward", "is_wrong"),
    [
        (1.0, 1.005, False),
        (1.0, 1.1, True),
        (0.0, 1e-6, False),
        (0.0, 1e-4, False),
        (0.0, 0.1, True),
        (1.0, float("nan"), True),
    ],
)
def test_derivatives_are_compared_as_far_as_finite_differences_are_accurate(
    numeric: float, backward: float, is_wrong: bool
) -> None:
    """One part in a hundred; NaN is never right."""
    assert Slope(argument="x", numeric=numeric, backward=backward).is_wrong == is_wrong


def test_writing_into_the_gradient() -> None:
    """Is a wrong backward, whatever its numbers are."""
    function = CheckedFunction(name="Clip", verdict="writes gradient", defined=DEFINED)
    (found,) = derivative_findings(function)

    assert found.code == "GI201"
    assert found.text.startswith("Clip.backward writes into the gradient that it receives.")
    assert found.remedy.startswith("At cube.py:8, make a new tensor instead")
