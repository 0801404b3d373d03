"""Values of each example that are spread along the rows of a batch."""

from collections.abc import Iterator

from gradinspect.checks.facts.axes import SpreadAlongRow
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_shape

SPREAD = Rule(
    code="GI706",
    title="values of each example are spread along the rows",
    summary="table[t] has a value for each example, and a product matches it with the last axis of the batch.",
    explanation="torch matches shapes from the last axis. A vector of one value for each example, such as the level of "
    "noise of its step, then multiplies the columns of a batch, and not its rows. That is an error of torch unless a "
    "batch happens to have as many examples as its rows have elements. Then each example gets the values of all "
    "others, and the loss falls to a wrong place. Reported where the values were looked up in a table by an index for "
    "each example, and neither factor learns.",
    change="""\
  import torch
  from torch import nn

  net = nn.Linear(16, 16)
  keep = torch.linspace(0.99, 0.01, 100)
  for _ in range(3):
      x, noise = torch.rand(16, 16), torch.randn(16, 16)
      t = torch.randint(100, (16,))
-     level = keep[t]  # one for each column, not for each row
+     level = keep[t][:, None]
      noisy = level.sqrt() * x + (1 - level).sqrt() * noise
      (net(noisy) - noise).square().mean().backward()
""",
    remedy="Give the values an axis of length 1 for each further axis of the batch: table[t][:, None].",
)


def spread_findings(fact: SpreadAlongRow) -> Iterator[Finding]:
    """Report a product that takes examples for columns."""
    length, where = fact.shape[0], line_of(fact.looked_up or fact.used)
    axes = ", ".join([":", *["None"] * (len(fact.shape) - 1)])
    yield SPREAD.finding(
        text=f"{length} values, one for each example, multiply {format_shape(fact.shape)} along its last axis, in each "
        f"of {fact.num_calls} calls: each example gets the values of all {length}. The shapes fit only because a row "
        "has as many elements as the batch has examples.",
        places=(
            *place_of("values", None if fact.looked_up == fact.used else fact.looked_up),
            *place_of("product", fact.used),
        ),
        remedy=f"At {where}, index what was looked up with [{axes}].",
    )


JUDGE = Judge(SpreadAlongRow, spread_findings)
