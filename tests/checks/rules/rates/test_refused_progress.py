"""Schedulers that take progress for a plateau, as findings."""

from gradinspect.checks.facts.rates import ProgressRefused
from gradinspect.checks.rules.rates.refused_progress import refused_findings
from gradinspect.graph import Frame

MADE = Frame(file="train.py", line=3, code="scheduler = ReduceLROnPlateau(opt, 'max')")
TOLD = Frame(file="train.py", line=9, code="scheduler.step(val_loss)")


def test_the_number_and_the_other_mode_are_named() -> None:
    """A loss fell, an accuracy rose."""
    fact = ProgressRefused(
        mode="max", metric="val_loss", num_records=4, first=2.0, last=0.5, optimizer="opt", made=MADE, scheduled=TOLD
    )
    (loss,) = refused_findings(fact)
    (accuracy,) = refused_findings(
        ProgressRefused(mode="min", metric="acc", num_records=3, first=0.5, last=0.9, optimizer="opt")
    )

    assert loss.text.startswith("val_loss fell from 2 to 0.5. ReduceLROnPlateau has mode='max', so 4 new best values")
    assert loss.remedy == "Make ReduceLROnPlateau at train.py:3 with mode='min'."
    assert [(place.role, place.line) for place in loss.places] == [("scheduler", 3), ("told", 9)]
    assert accuracy.text.startswith("acc rose from 0.5 to 0.9.")
    assert accuracy.remedy == "Make ReduceLROnPlateau with mode='max'."
