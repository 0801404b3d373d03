"""What goes into kl_div, judged on facts made by hand."""

import pytest

from gradinspect.checks.facts.values import DivergenceInput
from gradinspect.checks.rules.losses.divergences import divergence_findings
from gradinspect.graph import Frame

LINES = Frame(file="train.py", line=3), Frame(file="train.py", line=5)


@pytest.mark.parametrize(
    ("made", "text", "remedy"),
    [
        ("softmax", "the output of softmax as its first argument: probabilities, not their logarithms.",
         "Replace softmax at train.py:3 by log_softmax. The second argument stays as it is."),
        ("sigmoid", "the output of sigmoid as its first argument: probabilities, not their logarithms.",
         "Replace sigmoid at train.py:3 by logsigmoid. The second argument stays as it is."),
        ("linear", "the output of linear as its first argument, which is not made of log-probabilities: the loss falls",
         "Apply log_softmax to the first argument at train.py:5."),
    ],
)  # fmt: skip
def test_what_went_into_it_is_named(made: str, text: str, remedy: str) -> None:
    """With both lines, or one if they are the same."""
    is_probability = made != "linear"
    apart, together = (
        next(divergence_findings(DivergenceInput(maker=made, is_probability=is_probability, made=at, used=LINES[1])))
        for at in LINES
    )

    assert text in apart.text
    assert apart.remedy == remedy
    assert [(place.role, place.line) for place in apart.places] == [("applied", 3), ("loss", 5)]
    assert [(place.role, place.line) for place in together.places] == [("loss", 5)]
