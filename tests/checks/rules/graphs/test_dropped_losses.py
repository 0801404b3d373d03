"""Losses that nothing is trained on, as findings."""

from gradinspect.checks.facts.graphs import LastLossOnly
from gradinspect.checks.rules.graphs.dropped_losses import dropped_findings
from gradinspect.graph import Frame

LOSS = Frame(file="train.py", line=7, code="loss = ...")
BACKWARD = Frame(file="train.py", line=9, code="loss.backward()")


def test_where_backward_belongs_is_said() -> None:
    """Into the loop if it is below it; else it waits as the step does."""
    for is_below, remedy in (
        (True, "Move train.py:9 into the loop of train.py:7, and the optimizer's step with it."),
        (False, "Call backward() at train.py:9 for each loss, and let only the step wait."),
    ):
        fact = LastLossOnly(num_losses=16, num_rounds=2, loss=LOSS, backward=BACKWARD, is_below=is_below)
        (found,) = dropped_findings(fact)

        assert found.remedy == remedy
        assert found.text.startswith("train.py:7 computes 16 losses for each backward call at train.py:9")
        assert [(place.role, place.line) for place in found.places] == [("called", 9), ("loss", 7)]
