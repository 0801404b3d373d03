"""Moving averages that keep nothing of what they were."""

from collections.abc import Iterator

from gradinspect.checks.facts.axes import SwappedAverage
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

SWAPPED = Rule(
    code="GI387",
    title="a moving average takes nearly all of the new value",
    summary="The two weights of an average are exchanged, so that it follows the parameters at once.",
    explanation="average = 0.999 * average + 0.001 * new changes slowly. With the weights exchanged, or with "
    "lerp_(new, 0.999), the average is the new value after each step: a teacher is then its student, and a target "
    "network moves as fast as what is compared with it. Reported where the weight of the new value is 0.95 or more "
    "and less than 1, each time.",
    change="""\
  import copy
  import torch
  from torch import nn

  model = nn.Linear(8, 2)
  average = copy.deepcopy(model)
  optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
  for _ in range(4):
      x, other = torch.randn(2, 16, 8)
      loss = (model(x) - average(other).detach()).square().mean()
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
      with torch.no_grad():
          for kept, new in zip(average.parameters(), model.parameters()):
-             kept.lerp_(new, 0.99)  # takes 99% of the new value
+             kept.lerp_(new, 0.01)
""",
    remedy="Exchange the weights.",
)


def average_findings(fact: SwappedAverage) -> Iterator[Finding]:
    """Report an average that follows at once."""
    yield SWAPPED.finding(
        text=f"An average takes {fact.weight:g} of the new value and keeps {1 - fact.weight:.4g} of its own, each of "
        f"{fact.num_times} times: it is the new value, and averages nothing.",
        places=place_of("updated", fact.updated),
        remedy=f"At {line_of(fact.updated)}, exchange the weights: {fact.weight:g} for the old value, "
        f"{1 - fact.weight:.4g} for the new one.",
    )


JUDGE = Judge(SwappedAverage, average_findings)
