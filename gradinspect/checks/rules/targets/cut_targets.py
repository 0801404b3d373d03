"""Targets of a regression that were made whole numbers."""

from collections.abc import Iterator

from gradinspect.checks.facts.targets import CutTargets
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

CUT = Rule(
    code="GI329",
    title="the targets have lost their fractions",
    summary="A cast to whole numbers has cut off most of what a regression is to learn.",
    explanation="torch.tensor(values, dtype=torch.long) and values.long() cut off what stands after the point: "
    "all prices between 0 and 1 become 0, and a target with mean 0 and deviation 1 keeps three or four values. "
    "Whole numbers are for classes and indices. Reported if the targets of mse_loss, l1_loss, smooth_l1_loss or "
    "huber_loss come from such a cast, and the fractions that were cut off are, in the mean, more than a quarter of "
    "the standard deviation of the values. A draw that is scaled and cut is one of whole numbers, and meant.",
    change="""\
  import torch
  from torch import nn

  model = nn.Linear(8, 1)
  x = torch.rand(32, 8)
- y = x.mean(1, keepdim=True).long()  # all are 0
+ y = x.mean(1, keepdim=True)
  for _ in range(4):
      loss = nn.functional.mse_loss(model(x), y.float())
      loss.backward()
""",
    remedy="Keep the targets of a regression in a floating-point dtype.",
)


def cut_findings(fact: CutTargets) -> Iterator[Finding]:
    """Report the cast."""
    yield CUT.finding(
        text=f"{line_of(fact.cast)} makes whole numbers of {fact.num_values:,} values between {fact.least:.3g} and "
        f"{fact.most:.3g}, and {fact.loss} compares the model with what is left.",
        places=(*place_of("cast", fact.cast), *place_of("loss", fact.used)),
        remedy=f"At {line_of(fact.cast)}, make them torch.float32.",
    )


JUDGE = Judge(CutTargets, cut_findings)
