"""Losses with the wrong sign, as findings."""

from gradinspect.checks.facts.targets import WrongSign
from gradinspect.checks.rules.targets.signs import sign_findings
from gradinspect.graph import Frame

LOSS = Frame(file="train.py", line=3, code="loss = -F.mse_loss(p, y)")
BACKWARD = Frame(file="train.py", line=7, code="loss.backward()")


def test_what_grows_worse_is_named() -> None:
    """An error, or the probability of what was selected."""
    (error,) = sign_findings(WrongSign(op="mse_loss", value=-2, num_calls=4, made=LOSS, backward=BACKWARD))
    (chosen,) = sign_findings(WrongSign(op="getitem", value=-2, num_calls=4, made=LOSS, backward=LOSS))

    assert "mse_loss times a negative number; the last one was -2" in error.text
    assert "without a minus" in chosen.text
    assert "train.py:3" in error.remedy
    assert [[place.role for place in one.places] for one in (error, chosen)] == [["loss", "backward"], ["loss"]]
