"""What is said of advantages and targets with a graph, on facts made by hand."""

import pytest

from gradinspect.checks.facts.objectives import AttachedAdvantage, AttachedTarget
from gradinspect.checks.registry import findings_on
from gradinspect.graph import Frame


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        ("loss = -(log_prob * adv).mean()", "multiply by adv.detach() instead of adv."),
        ("loss = -(self.log_prob(a) * self.gap).mean()", "multiply by self.gap.detach() instead of self.gap."),
        (
            "loss = -(log_prob * (returns - values)).mean()",
            "call detach() on the factor that rl.py:3 computes: only its value is to count.",
        ),
        ("loss = policy_loss(", "call detach() on the factor that rl.py:3 computes: only its value is to count."),
    ],
)
def test_the_factor_that_is_to_be_detached(code: str, remedy: str) -> None:
    """It is the one that was computed, or the only variable that is no log-probability."""
    subtracted = Frame(file="rl.py", line=3, code="adv = returns - values")
    (finding,) = findings_on(AttachedAdvantage(subtracted=subtracted, used=Frame(file="rl.py", line=5, code=code)))

    assert finding.remedy == f"At rl.py:5, {remedy}"
    assert [(place.role, place.line) for place in finding.places] == [("computed", 3), ("used", 5)]


def test_a_target_is_named_by_its_variable() -> None:
    """As far as it has one."""
    made, used = Frame(file="q.py", line=3, code="y = r + 0.9 * best"), Frame(file="q.py", line=4)
    (finding,) = findings_on(AttachedTarget(op="max", made=made, used=used))

    assert finding.remedy == "Compute the target at q.py:3 under torch.no_grad(), or use y.detach() at q.py:4."
    assert "by max(), and it has a graph" in finding.text
