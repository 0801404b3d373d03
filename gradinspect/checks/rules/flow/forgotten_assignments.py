"""New values of parameters that are assigned to the variable of a loop."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import ForgottenAssignment
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge
from gradinspect.checks.rules.flow.dropped_results import DROPPED


def forgotten_findings(fact: ForgottenAssignment) -> Iterator[Finding]:
    """Report an assignment that changes nothing."""
    where = line_of(fact.assigned)
    yield DROPPED.finding(
        text=f"{where} makes a new tensor and calls it {fact.name}, which nothing reads before the loop goes on. What "
        "the loop goes through stays as it is.",
        places=place_of("assigned", fact.assigned),
        remedy=f"Write into the tensor at {where}: with torch.no_grad(): {fact.name}.copy_({fact.value})",
        subjects=(fact.name,),
    )


JUDGE = Judge(ForgottenAssignment, forgotten_findings)
