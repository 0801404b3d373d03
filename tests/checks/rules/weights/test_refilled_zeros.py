"""Zeros of a mask that are gone, as findings."""

from gradinspect.checks.facts.training import RefilledZeros
from gradinspect.checks.rules.weights.refilled_zeros import refilled_findings
from gradinspect.graph import Frame

SET = Frame(file="prune.py", line=3, code="p.mul_(mask)")
STEP = Frame(file="prune.py", line=9, code="opt.step()")


def test_the_mask_and_the_step_are_named() -> None:
    """With how many elements it was about."""
    fact = RefilledZeros(
        names=("0.weight",), num_zeros=1200, num_elements=2400, num_steps=2, optimizer="opt", set=SET, step=STEP
    )
    (found,) = refilled_findings(fact)

    assert found.text.startswith("prune.py:3 has set 1,200 of 2,400 elements of 0.weight to zero once")
    assert found.remedy.startswith("Write the zeros of prune.py:3 again after each step of opt")
    assert [(place.role, place.line) for place in found.places] == [("masked", 3), ("step", 9)]
