"""Targets without their fractions, as findings."""

from gradinspect.checks.facts.targets import CutTargets
from gradinspect.checks.rules.targets.cut_targets import cut_findings
from gradinspect.graph import Frame

CAST = Frame(file="train.py", line=3, code="y = y.long()")
USED = Frame(file="train.py", line=7, code="loss = criterion(model(x), y.float())")


def test_the_cast_is_named() -> None:
    """With the values before it."""
    (found,) = cut_findings(CutTargets(loss="mse_loss", least=-2.51, most=3.0, num_values=1_500, cast=CAST, used=USED))

    assert found.text == (
        "train.py:3 makes whole numbers of 1,500 values between -2.51 and 3, and mse_loss compares the model with "
        "what is left."
    )
    assert found.remedy == "At train.py:3, make them torch.float32."
    assert [(place.role, place.line) for place in found.places] == [("cast", 3), ("loss", 7)]
