"""Adversaries that are told the same, as findings."""

from gradinspect.checks.facts.targets import AgreeingAdversaries
from gradinspect.checks.rules.targets.adversaries import agreeing_findings
from gradinspect.graph import Frame

FAKE = Frame(file="train.py", line=3, code="fake")
OTHER = Frame(file="train.py", line=7, code="other")


def test_the_line_to_change_comes_first() -> None:
    """That of the generator, or that of what it made."""
    (own,) = agreeing_findings(AgreeingAdversaries(is_generator=True, label=0.0, num_calls=4, fake=FAKE, other=OTHER))
    (both,) = agreeing_findings(AgreeingAdversaries(is_generator=False, label=1.0, num_calls=4, fake=FAKE, other=OTHER))

    assert [place.line for place in own.places] == [7, 3]
    assert "train.py:7 trains the generator so that it answers 0" in own.text
    assert own.remedy.startswith("At train.py:7, give the generator the label")
    assert [place.line for place in both.places] == [3, 7]
    assert "is told 1 both of what the generator makes, at train.py:3" in both.text
    assert both.remedy.startswith("At train.py:3, give what the generator makes another label")
