"""Losses with the wrong sign, as findings."""

from gradinspect.checks.facts.objectives import RewardMinimized
from gradinspect.checks.facts.targets import WrongSign
from gradinspect.checks.rules.targets.signs import reward_findings, sign_findings
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


def test_a_reward_that_is_minimized_is_named() -> None:
    """With the product, and what is to become of it."""
    used = Frame(file="train.py", line=7, code="loss = (lp * adv).mean()")
    (found,) = reward_findings(RewardMinimized(factor="adv", used=used))

    assert found.code == "GI327"
    assert found.text.endswith("so actions become less likely the larger adv is.")
    assert found.remedy == "Change the sign of the product at train.py:7: the loss of a policy is -log_prob * adv."


def test_a_ratio_is_no_log_probability() -> None:
    """A minus belongs where its mean is taken, since the smaller one of two products was chosen before."""
    used = Frame(file="train.py", line=7, code="loss = torch.min(first, second).mean()")
    (found,) = reward_findings(RewardMinimized(factor="adv", is_ratio=True, used=used))

    assert "the loss adds its product with a ratio of probabilities (train.py:7)" in found.text
    assert found.remedy.startswith("Change the sign of what train.py:7 adds up: ")
