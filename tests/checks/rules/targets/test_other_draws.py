"""Scores of another draw, as findings."""

from gradinspect.checks.facts.targets import OtherDraw
from gradinspect.checks.rules.targets.other_draws import draw_findings
from gradinspect.graph import Frame

TAKEN = Frame(file="rl.py", line=3, code="action = dist.sample()")
SCORED = Frame(file="rl.py", line=7, code="score = dist.log_prob(dist.sample())")


def test_the_action_that_was_taken_is_scored() -> None:
    """A line that draws and scores is named once."""
    (found,) = draw_findings(OtherDraw(num_calls=4, taken=TAKEN, drawn=SCORED, scored=SCORED))

    assert found.remedy == "At rl.py:7, score what rl.py:3 draws."
    assert [(place.role, place.line) for place in found.places] == [("taken", 3), ("drawn", 7)]
