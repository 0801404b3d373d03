"""Weights that a mask has set to zero, and that do not stay zero."""

from collections.abc import Iterator

from gradinspect.checks.facts.training import RefilledZeros
from gradinspect.checks.findings import Finding, line_of, listed, place_of
from gradinspect.checks.rule import Judge, Rule

REFILLED = Rule(
    code="GI391",
    title="the optimizer fills what a mask has set to zero",
    summary="A mask was multiplied into a weight once; the gradient does not know of it, and the next step undoes it.",
    explanation="Pruning, or a layer with fixed connections, sets some weights to zero. Done once on the values, it "
    "lasts until the next step: their gradient is not zero. The mask has to be applied after each step, or in the "
    "forward pass, as torch.nn.utils.prune does, which also masks the gradient. Reported if a mask was the last that "
    "the program has written to a matrix, and the steps since then have left next to none of its zeros. Whole rows "
    "and columns, and a matrix whose other values are all the same, are taken for initial values.",
    change="""\
  import torch
  from torch import nn
+ from torch.nn.utils import prune

  layer = nn.Linear(8, 4)
  mask = (torch.arange(32).view(4, 8) % 3 > 0).float()
- with torch.no_grad():
-     layer.weight.mul_(mask)
+ prune.custom_from_mask(layer, "weight", mask)
  optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
  for _ in range(4):
      loss = (layer(torch.randn(16, 8)) - 1).square().mean()
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
""",
    remedy="Apply the mask after each step, or in the forward pass, as torch.nn.utils.prune does.",
)


def refilled_findings(fact: RefilledZeros) -> Iterator[Finding]:
    """Say what the mask has set to zero, and what is left of it."""
    where = line_of(fact.set)
    yield REFILLED.finding(
        text=f"{where} has set {fact.num_zeros:,} of {fact.num_elements:,} elements of {listed(fact.names)} to zero "
        f"once, and {fact.optimizer} at {line_of(fact.step)} has filled nearly all of them since: their gradient is "
        "not masked.",
        places=(*place_of("masked", fact.set), *place_of("step", fact.step)),
        remedy=f"Write the zeros of {where} again after each step of {fact.optimizer}, or mask the weight in forward, "
        "as torch.nn.utils.prune.custom_from_mask() does.",
        subjects=fact.names,
    )


JUDGE = Judge(RefilledZeros, refilled_findings)
