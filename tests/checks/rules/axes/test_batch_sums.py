"""Sums over a batch, as findings."""

from gradinspect.checks.facts.axes import BatchSum
from gradinspect.checks.rules.axes.batch_sums import sum_findings
from gradinspect.graph import Frame

SUMMED = Frame(file="flow.py", line=3, code="return z, s.sum()")
ADDED = Frame(file="flow.py", line=7, code="return base + logdet")


def test_the_sum_runs_over_the_features_of_each_example() -> None:
    """Of all axes but the first."""
    (flat,) = sum_findings(BatchSum(shape=(8, 3), num_calls=4, summed=SUMMED, used=ADDED))
    (images,) = sum_findings(BatchSum(shape=(8, 3, 4, 4), num_calls=4, summed=ADDED, used=ADDED))

    assert "sum() of [8, 3] is one number for the whole batch" in flat.text
    assert flat.remedy.endswith("At flow.py:3, sum over the features of each example: sum(1).")
    assert images.remedy.endswith("flatten(1).sum(1).")
    assert [[place.role for place in one.places] for one in (flat, images)] == [["summed", "added"], ["added"]]
