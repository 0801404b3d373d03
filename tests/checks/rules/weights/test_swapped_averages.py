"""Averages that take nearly all of the new value, as findings."""

from gradinspect.checks.facts.axes import SwappedAverage
from gradinspect.checks.rules.weights.swapped_averages import average_findings
from gradinspect.graph import Frame


def test_the_weights_are_exchanged() -> None:
    """At the line that updates the average."""
    line = Frame(file="ema.py", line=7, code="kept.lerp_(new, 0.99)")
    (found,) = average_findings(SwappedAverage(weight=0.99, num_times=8, updated=line))

    assert "takes 0.99 of the new value and keeps 0.01 of its own, each of 8 times" in found.text
    assert found.remedy == "At ema.py:7, exchange the weights: 0.99 for the old value, 0.01 for the new one."
