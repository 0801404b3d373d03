"""Learning rates for factors, as findings."""

from gradinspect.checks.facts.training import OptimizerMisuse
from gradinspect.checks.rules.rates.squared_rates import squared_findings
from gradinspect.graph import Frame

CREATED = Frame(file="train.py", line=3, code="opt = SGD(model.parameters(), lr=0.01)")


def test_the_square_is_named() -> None:
    """Other things that are wrong with a learning rate are not said here."""
    (found,) = squared_findings(OptimizerMisuse(kind="squared", optimizer="opt", created=CREATED, squared=0.01))

    assert "the function of LambdaLR returns to LambdaLR is 0.01, the learning rate of opt itself" in found.text
    assert found.text.endswith("opt steps with 0.0001 at most.")
    assert found.remedy == "In the function of LambdaLR, divide by 0.01: 1.0 means no change."
    (named,) = squared_findings(OptimizerMisuse(kind="squared", optimizer="opt", function=CREATED, squared=0.01))
    assert named.remedy.startswith("In the function at train.py:3, divide by 0.01")
    assert not list(squared_findings(OptimizerMisuse(kind="falls", optimizer="opt", ratio=0.01)))
