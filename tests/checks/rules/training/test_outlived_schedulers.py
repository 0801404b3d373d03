"""Schedulers of optimizers that do not step any more, as findings."""

from gradinspect.checks.facts.training import OptimizerMisuse
from gradinspect.checks.rules.training.outlived_schedulers import outlived_findings
from gradinspect.graph import Frame


def test_both_optimizers_and_the_scheduler_have_lines() -> None:
    """The new optimizer is where a scheduler is to be made; other facts are other rules'."""
    old, new, scheduled = (Frame(file="train.py", line=line, code="") for line in (3, 9, 15))
    fact = OptimizerMisuse(
        kind="outlived", optimizer="opt", created=old, scheduled=scheduled, other="opt", other_created=new
    )
    (found,) = outlived_findings(fact)

    assert found.code == "GI382"
    assert [(one.role, one.line) for one in found.places] == [("optimizer", 3), ("replaced", 9), ("scheduler", 15)]
    assert found.remedy.startswith("Make the scheduler again after train.py:9")
    assert list(outlived_findings(OptimizerMisuse(kind="zero", optimizer="opt"))) == []
