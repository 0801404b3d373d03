"""Schedules that are stepped at another pace, as findings."""

import pytest

from gradinspect.checks.facts.rates import OtherPace, PlateauOfBatches
from gradinspect.checks.rules.rates.other_paces import pace_findings, plateau_findings
from gradinspect.graph import Frame

STEPPED = Frame(file="train.py", line=9, code="scheduler.step()")


def test_epochs_and_batches_are_told_apart() -> None:
    """The line moves out of the loop over the batches, or into it."""
    (often,) = pace_findings(
        OtherPace(
            counts="epochs", scheduler="CosineAnnealingLR", length=4, given="T_max=epochs", num_scheduled=7,
            num_steps=7, optimizer="opt", scheduled=STEPPED,
        )
    )  # fmt: skip
    (seldom,) = pace_findings(
        OtherPace(
            counts="batches", scheduler="OneCycleLR", length=2_000, given="total_steps=total", num_scheduled=3,
            num_steps=60, optimizer="opt", scheduled=STEPPED,
        )
    )  # fmt: skip

    assert "reached its end after 4 calls of step(). train.py:9 has called it 7 times" in often.text
    assert often.remedy == "Move train.py:9 out of the loop over the batches, so that it is called once per epoch."
    assert "2,000 steps (total_steps=total). train.py:9 calls it once for each 20 steps of opt" in seldom.text
    assert seldom.text.endswith("so it ends at 1/20 of its way.")
    assert seldom.remedy.startswith("Move train.py:9 into the loop over the batches")


@pytest.mark.parametrize(("scheduler", "word"), [("MultiStepLR", "all"), ("StepLR", "three")])
def test_drops_are_said_to_be_over(scheduler: str, word: str) -> None:
    """With the loop that they fit."""
    (found,) = pace_findings(
        OtherPace(
            counts="epochs", scheduler=scheduler, length=9, given="milestones=[6, 9]", num_scheduled=20, num_steps=20,
            optimizer="opt", scheduled=STEPPED, num_epochs=12, epoch=2, loop=Frame(file="train.py", line=4, code="for"),
        )
    )  # fmt: skip

    assert "milestones=[6, 9], which fits the 12 passes of the loop at train.py:4" in found.text
    assert found.text.endswith(f"so {word} of its drops are over in pass 2.")
    assert found.remedy == "Move train.py:9 out of the loop over the batches, so that it is called once per epoch."


def test_a_plateau_of_batches_names_the_patience() -> None:
    """And what the scheduler is told."""
    fact = PlateauOfBatches(loss="loss", patience=3, num_told=50, optimizer="opt", scheduled=STEPPED)
    (found,) = plateau_findings(fact)

    assert found.text.startswith("train.py:9 tells ReduceLROnPlateau loss, the loss of one batch, after each step of")
    assert "Its patience of 3 is one for epochs" in found.text
    assert "so 4 of them without a new low are chance" in found.text
    assert found.remedy.startswith("Move train.py:9 out of the loop over the batches")
