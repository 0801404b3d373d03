"""Cosines for scores, as findings."""

from gradinspect.checks.facts.targets import CloseScores
from gradinspect.checks.rules.losses.close_scores import close_findings
from gradinspect.graph import Frame

MADE = Frame(file="train.py", line=3, code="scores = ...")


def test_the_least_loss_is_said() -> None:
    """Beside that of guessing."""
    (found,) = close_findings(CloseScores(num_classes=100, floor=2.6658, made=MADE, used=MADE))

    assert found.text.endswith("With 100 classes it cannot fall below 2.67, of the 4.61 that guessing has.")
    assert found.remedy == "Divide the scores of train.py:3 by a temperature, such as 0.07."
    assert [place.role for place in found.places] == ["scores"]
