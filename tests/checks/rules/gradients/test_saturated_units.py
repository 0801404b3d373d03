"""Saturated units, as findings."""

import pytest

from gradinspect.checks.facts.dead_units import SaturatedUnits
from gradinspect.checks.rules.gradients.saturated_units import saturated_findings
from gradinspect.graph import Frame

LAYER = Frame(file="train.py", line=3, code="h = first(x)")
USED = Frame(file="train.py", line=4, code="h = h.sigmoid()")


@pytest.mark.parametrize(
    ("greatest", "cause", "remedy"),
    [
        (109_600.0, "the features go up to 1.096e+05", "Before train.py:3, subtract the mean of each feature"),
        (3.0, "the weights before it are large", "Start from smaller weights"),
    ],
)
def test_the_data_or_the_weights_are_the_cause(greatest: float, cause: str, remedy: str) -> None:
    """As the size of the data says."""
    fact = SaturatedUnits(function="sigmoid", share=0.998, greatest=greatest, layer=LAYER, used=USED)
    (found,) = saturated_findings(fact)

    assert "at least 99% of what sigmoid at train.py:4 returns is nearly 0 or 1" in found.text
    assert cause in found.text
    assert found.remedy.startswith(remedy)
