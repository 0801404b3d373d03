"""Attention whose weights add up to one along the wrong axis."""

from collections.abc import Iterator

from gradinspect.checks.facts.axes import OtherAxis
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_shape

OTHER_AXIS = Rule(
    code="GI709",
    title="the weights of attention add up to one along another axis than the product sums over",
    summary="A softmax along axis -2 shares each key out among the queries, and the product sums over the keys.",
    explanation="softmax(q @ k.mT, dim=-1) @ v averages the values: the weights of each query add up to one. Along "
    "dim=-2 those of each key do, while the product still sums over the keys: what a query gets is no average, and "
    "under a causal mask the weights of a query depend on the queries after it. The loss falls nevertheless, to a "
    "worse place. Reported for scores of a sequence with itself, as those of queries and keys of other lengths are "
    "often shared out on purpose.",
    change="""\
  import torch
  from torch import nn

  query, key, value = (nn.Linear(8, 8) for _ in range(3))
  for _ in range(3):
      x = torch.randn(4, 6, 8)
      scores = query(x) @ key(x).transpose(-2, -1) / 8**0.5
-     weights = torch.softmax(scores, dim=-2)
+     weights = torch.softmax(scores, dim=-1)
      (weights @ value(x) - x).square().mean().backward()
""",
    remedy="Apply softmax along the last axis, which the product with the values sums over.",
)


def other_axis_findings(fact: OtherAxis) -> Iterator[Finding]:
    """Report weights that are shared out among the queries."""
    yield OTHER_AXIS.finding(
        text=f"softmax makes the weights {format_shape(fact.shape)} add up to one along axis -2, and the product at "
        f"{line_of(fact.used)} sums over their last axis, in each of {fact.num_calls} calls: what it returns is no "
        "average of the values.",
        places=(*place_of("softmax", fact.applied), *place_of("product", fact.used)),
        remedy=f"At {line_of(fact.applied)}, apply softmax along the last axis: dim=-1. If each key is to be shared "
        "out among the queries, say so by transposing the weights before the product.",
    )


JUDGE = Judge(OtherAxis, other_axis_findings)
