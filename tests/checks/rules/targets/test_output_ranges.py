"""Targets out of reach, as findings."""

from gradinspect.checks.evidence.targets import ranges
from gradinspect.checks.facts.targets import OutOfReach
from gradinspect.checks.rules.targets.output_ranges import _RANGES, reach_findings
from gradinspect.graph import Frame

FIRST = Frame(file="train.py", line=3, code="first")
USED = Frame(file="train.py", line=7, code="used")


def test_the_range_and_the_targets_are_named() -> None:
    """And the line of the last function."""
    fact = OutOfReach(op="relu", loss="mse_loss", least=-3, most=3, share=0.5, num_calls=4, made=FIRST, used=USED)
    (found,) = reach_findings(fact)

    assert "relu returns values of 0 and above, and mse_loss compares them with targets from -3 to 3" in found.text
    assert "50% of them or more lie outside" in found.text
    assert found.remedy.startswith("Leave out the relu at train.py:3")


def test_the_last_of_the_modules_of_a_line_is_meant() -> None:
    """A loop makes one for each layer."""
    fact = OutOfReach(
        op="relu", loss="mse_loss", least=-3, most=3, share=0.5, num_calls=4, layer=FIRST, made=USED, used=USED
    )
    (found,) = reach_findings(fact)

    assert found.remedy.startswith("Leave out the last relu that train.py:3 makes")


def test_each_range_has_words() -> None:
    """Of every function that is looked at."""
    assert _RANGES.keys() == ranges.RANGES.keys()
