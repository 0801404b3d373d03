"""Units of the first layer that are saturated, as the data or the weights are too large."""

from collections.abc import Iterator

from gradinspect.checks.facts.dead_units import SaturatedUnits
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

LARGE = 20.0  # of data
_SATURATES = {"tanh": "-1 or 1", "sigmoid": "0 or 1"}

SATURATED = Rule(
    code="GI607",
    title="the units of the first layer are saturated",
    summary="A sigmoid or tanh of the first layer is flat for nearly all of its units, which learn nothing.",
    explanation="Far from zero, sigmoid and tanh do not change any more: their gradient is nearly 0. If the features "
    "are in the thousands, as an income is, or the initial weights are large, nearly all units of the first layer are "
    "there from the start. What the model reads of its input is then a few constants, and the loss stays near that of "
    "the most frequent answer. Features are to have a mean of 0 and a deviation of 1. Reported for an activation of a "
    "linear layer of data, which another linear layer reads, if it is so in each of the first calls.",
    change="""\
  import torch
  from torch import nn

  x = torch.rand(64, 2) * torch.tensor([60.0, 90_000.0])
  y = (x[:, :1] > 40).float()
- data = x  # ages and incomes
+ data = (x - x.mean(0)) / x.std(0)
  model = nn.Sequential(
      nn.Linear(2, 16), nn.Sigmoid(), nn.Linear(16, 1), nn.Sigmoid()
  )
  for _ in range(4):
      loss = nn.functional.binary_cross_entropy(model(data), y)
      loss.backward()
""",
    remedy="Scale the features, and start from small weights.",
    explains=("GI601",),
)


def saturated_findings(fact: SaturatedUnits) -> Iterator[Finding]:
    """Report an activation that is flat from the start."""
    where = line_of(fact.used)
    is_data = fact.greatest >= LARGE
    cause = f"the features go up to {fact.greatest:,.4g}" if is_data else "the weights before it are large"
    remedy = f"Before {line_of(fact.layer)}, subtract the mean of each feature and divide by its standard deviation."
    if not is_data:
        remedy = "Start from smaller weights, as nn.init.xavier_uniform_() makes them."
    yield SATURATED.finding(
        text=f"In each of the first calls, {_share(fact.share)} of what {fact.function} at {where} returns is "
        f"nearly {_SATURATES[fact.function]}, where its gradient is nearly 0: {cause}. The layer before it hardly "
        "learns.",
        places=(
            *place_of("layer", None if fact.layer == fact.used else fact.layer),
            *place_of("saturated", fact.used),
        ),
        remedy=remedy,
    )


JUDGE = Judge(SaturatedUnits, saturated_findings)


def _share(share: float) -> str:
    return "all" if share == 1 else f"at least {min(share, 0.99):.0%}"
