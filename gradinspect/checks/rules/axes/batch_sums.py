"""Sums over a batch that are added to each example."""

from collections.abc import Iterator

from gradinspect.checks.facts.axes import BatchSum
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_shape

SUM = Rule(
    code="GI708",
    title="the sum over a batch is added to each example",
    summary="sum() without an axis is one number for the batch, and torch adds it to the value of each example.",
    explanation="A log-determinant, an entropy or a divergence is a sum over the features of each example: sum(1). "
    "Without an axis it runs over the examples as well, and the number is then added to each of their values: it "
    "counts as often as there are examples. The shapes fit, and the loss is far off. Reported where what was summed "
    "has as many rows as the sum is added to examples, in each call. The mean of a batch is not reported.",
    change="""\
  import torch
  from torch import nn

  scale = nn.Linear(2, 2)
  for _ in range(4):
      x = torch.randn(16, 2)
      s = torch.tanh(scale(x))
      z = x * s.exp()
-     log_p = -z.square().sum(1) / 2 + s.sum()  # one number for the batch
+     log_p = -z.square().sum(1) / 2 + s.sum(1)
      (-log_p.mean()).backward()
""",
    remedy="Sum over the features alone: sum(1), or flatten(1).sum(1) of more axes.",
)


def sum_findings(fact: BatchSum) -> Iterator[Finding]:
    """Report a sum that counts once for each example."""
    rows, where = fact.shape[0], line_of(fact.summed or fact.used)
    whole = "sum(1)" if len(fact.shape) == 2 else "flatten(1).sum(1)"
    yield SUM.finding(
        text=f"sum() of {format_shape(fact.shape)} is one number for the whole batch, and it is added to each of "
        f"{rows} values, in each of {fact.num_calls} calls: it counts {rows} times.",
        places=(*place_of("summed", None if fact.summed == fact.used else fact.summed), *place_of("added", fact.used)),
        remedy=f"At {where}, sum over the features of each example: {whole}.",
    )


JUDGE = Judge(BatchSum, sum_findings)
