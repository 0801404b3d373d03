"""Targets that are too large, as findings."""

from gradinspect.checks.facts.targets import FarTargets
from gradinspect.checks.rules.targets.far_targets import far_findings
from gradinspect.graph import Frame

MADE = Frame(file="train.py", line=3, code="made")
USED = Frame(file="train.py", line=7, code="used")


def test_how_far_the_output_has_come_is_said() -> None:
    """And where the targets are made, if it is another line."""
    fact = FarTargets(loss="mse_loss", target=77_877.4, first=0.28, last=40.7, num_calls=82, made=MADE, used=USED)
    (found,) = far_findings(fact)

    assert found.text.startswith("The targets at train.py:7 are 77,877 on average, and the output of the model 0.28 in")
    assert found.text.endswith("and 40.7 after 82 calls. At this pace it does not come near them.")
    assert [(place.role, place.line) for place in found.places] == [("targets", 3), ("loss", 7)]
