"""Layers whose units are all the same, and stay so."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import EqualUnits
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule

EQUAL = Rule(
    code="GI604",
    title="all units of a layer are the same, and stay so",
    summary="All rows of a weight have the same values, and each step changes all of them alike.",
    explanation="Units that have the same weights compute the same value. If the next layer treats them alike as well, "
    "because its weights are one constant too, they get the same gradient, so that no step makes them different: the "
    "layer has one unit in effect, however wide it is. Random values are what makes units different in the beginning. "
    "A constant for a scale, a bias, or for one layer among others that are random, is not reported: its rows differ "
    "after the first step.",
    change="""\
  import torch
  from torch import nn

  torch.manual_seed(0)
  model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
- for parameter in model.parameters():
-     nn.init.constant_(parameter, 0.1)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  for _ in range(5):
      x = torch.randn(16, 4)
      loss = (model(x) - x[:, :1]).square().mean()
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
""",
    remedy="Initialize weights with random values, as the layers of torch do by themselves.",
)


def equal_findings(fact: EqualUnits) -> Iterator[Finding]:
    """Name the weights, and the line that gave them one value."""
    is_one = len(fact.names) == 1
    rows = f"All {fact.num_rows:,} rows of {fact.names[0]}" if is_one else f"The rows of each of {listed(fact.names)}"
    yield EQUAL.finding(
        text=f"{rows} are equal, and after {fact.num_steps} steps that changed them they still are: the units compute "
        "the same value and get the same gradient.",
        places=(*place_of("set", fact.set), *place_of("backward", fact.backward)),
        remedy=f"Initialize {listed(fact.names)} with random values at {line_of(fact.set)}, such as by "
        "nn.init.xavier_uniform_().",
        subjects=fact.names,
    )


JUDGE = Judge(EqualUnits, equal_findings)
