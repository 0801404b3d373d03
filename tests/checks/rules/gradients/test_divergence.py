"""Losses that diverge."""

from gradinspect.checks.facts.backward_calls import DivergingLoss, LastStep
from gradinspect.checks.rules.gradients.divergence import divergence_findings
from gradinspect.graph import Frame

LINES = [Frame(file="train.py", line=number, code="") for number in (4, 9, 10)]


def test_the_learning_rate_is_named() -> None:
    """With the line that made the optimizer."""
    made, backward, step = LINES
    (found,) = divergence_findings(DivergingLoss(7.0, 2e9, 4, LastStep("opt", step, made, None, 0.5), backward))

    assert found.text == (
        "In 4 calls of backward in a row the loss has grown each time, from 7 to 2e+09: each step of opt, whose "
        "learning rate is 0.5, goes further past its goal than the one before."
    )
    assert found.remedy == (
        "Use a smaller learning rate than 0.5 at train.py:4, or scale inputs and targets to about one."
    )
    assert [place.role for place in found.places] == ["optimizer", "step", "backward"]


def test_an_optimizer_that_is_not_known_is_not_named() -> None:
    """As where the program updates its weights by hand."""
    (found,) = divergence_findings(DivergingLoss(7.0, 2e9, 4, None, LINES[1]))

    assert "each step of the optimizer goes further" in found.text
    assert found.remedy == "Use a smaller learning rate, or scale inputs and targets to about one."
