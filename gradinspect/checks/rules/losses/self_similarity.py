"""Similarities of each example to itself, among the classes of a loss."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import SelfSimilarity
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule
from gradinspect.units import format_count

SELF = Rule(
    code="GI357",
    title="each example is among its own negatives",
    summary="A contrastive loss compares each example of a batch with itself as well, which always wins.",
    explanation="z @ z.t() has the similarity of each example to itself on its diagonal. It is the largest of its row, "
    "so most of the softmax stays there if the positives are elsewhere: the loss has a high floor, and its gradient "
    "is about a class that never is the target. Reported for cross_entropy of a symmetric matrix whose diagonal is "
    "the largest of each row, and whose targets never are on it, in each call.",
    change="""\
  import torch
  from torch import nn
  from torch.nn import functional as F

  encoder = nn.Linear(8, 4)
  x, target = torch.randn(6, 8), torch.arange(12).roll(6)
  for _ in range(3):
      views = torch.cat([x + 0.1 * torch.randn_like(x) for _ in range(2)])
      z = F.normalize(encoder(views), dim=1)
      scores = z @ z.t() / 0.1
+     scores = scores.masked_fill(torch.eye(12, dtype=torch.bool), -1e9)
      F.cross_entropy(scores, target).backward()
""",
    remedy="Fill the diagonal with -inf before the loss.",
)


def self_findings(fact: SelfSimilarity) -> Iterator[Finding]:
    """Say how much of the softmax is on the diagonal."""
    used, rows = line_of(fact.used), fact.num_rows
    yield SELF.finding(
        text=f"cross_entropy at {used} got a symmetric matrix of {rows} rows in each of "
        f"{format_count(fact.num_calls, 'call')}: the largest value of each row is on the diagonal, where no target "
        f"is. Each example is compared with itself as well: {fact.share:.0%} of the softmax was on the diagonal in "
        "the last call.",
        places=(*place_of("scores", fact.made if fact.made != fact.used else None), *place_of("loss", fact.used)),
        remedy=f"Before {used}, hide the diagonal: scores = scores.masked_fill(torch.eye(len(scores), "
        "dtype=torch.bool, device=scores.device), float('-inf')), where scores is what the loss is given.",
    )


JUDGE = Judge(SelfSimilarity, self_findings)
