"""Samples that are changed again, as findings."""

from gradinspect.checks.facts.values import ChangedSamples
from gradinspect.checks.rules.losses.changed_samples import changed_samples_findings
from gradinspect.graph import Frame


def test_the_line_that_writes_is_named() -> None:
    """With how often it has found what it had left."""
    written = Frame(file="data.py", line=9, code="x -= self.mean")
    (found,) = changed_samples_findings(ChangedSamples(num_times=5, written=written))

    assert found.text.startswith("data.py:9 changes samples in the memory of the dataset. 5 times it found")
    assert [(place.role, place.line) for place in found.places] == [("written", 9)]
