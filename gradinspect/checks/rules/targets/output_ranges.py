"""Targets that lie outside of what a model can return."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import OutOfReach
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

_RANGES = {
    "sigmoid": "between 0 and 1", "softmax": "between 0 and 1", "tanh": "between -1 and 1", "relu": "of 0 and above",
    "softplus": "of 0 and above", "log_softmax": "of 0 and below", "logsigmoid": "of 0 and below",
    "relu6": "between 0 and 6", "hardtanh": "between -1 and 1",
}  # fmt: skip
REACH = Rule(
    code="GI322",
    title="the output cannot reach its targets",
    summary="A relu, sigmoid, tanh or softmax is the last function of a model whose targets lie outside of its range.",
    explanation="The last function of a model limits what it can return: a relu nothing below 0, a sigmoid nothing "
    "outside of 0 and 1. Where many targets lie outside, no weight brings the loss down: the output stays at the edge, "
    "where the derivative is zero, or nearly so. Reported where a tenth of the targets of each call lie outside, and "
    "clearly so.",
    change="""\
  import torch
  from torch import nn

  body = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
- head = nn.Sequential(nn.Linear(16, 1), nn.ReLU())  # nothing below 0
+ head = nn.Linear(16, 1)
  for _ in range(4):
      x = torch.randn(32, 8)
      nn.functional.mse_loss(head(body(x)), x.sum(1, keepdim=True)).backward()
""",
    remedy="Leave the last function out, or scale the targets into its range.",
)


def reach_findings(fact: OutOfReach) -> Iterator[Finding]:
    """Report a last function that cannot return what is wanted."""
    which = f"the {fact.op} at {line_of(fact.made or fact.used)}"
    if fact.layer is not None:  # a line in a loop makes those of other layers, too
        which = f"the last {fact.op} that {line_of(fact.layer)} makes"
    yield REACH.finding(
        text=f"{fact.op} returns values {_RANGES[fact.op]}, and {fact.loss} compares them with targets from "
        f"{fact.least:.4g} to {fact.most:.4g}. In each of {fact.num_calls} calls, {fact.share:.0%} of them or more lie "
        "outside, where no weight can bring the output.",
        places=(
            *place_of("layer", fact.layer),
            *place_of("output", None if fact.made == fact.used else fact.made),
            *place_of("loss", fact.used),
        ),
        remedy=f"Leave out {which}, or scale the targets into its range.",
    )


JUDGE = Judge(OutOfReach, reach_findings)
