"""Losses that are smallest if the model returns the same for every input."""

from collections.abc import Iterator

from gradinspect.checks.facts.objectives import CollapsedOutputs
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

COLLAPSED = Rule(
    code="GI336",
    title="the same output for every input is the best one",
    summary="The loss is nothing but negated similarities of two outputs of the same layers.",
    explanation="Layers that return one vector for every input make all similarities 1, and nothing in the loss is "
    "against it: it falls to its minimum, and the representation is worth nothing. SimSiam and BYOL detach one side of "
    "each similarity, contrastive losses have negative examples, others a term of the variance. Reported where each "
    "backward of the program is of such a loss, a gradient goes through both sides of each cosine_similarity, and both "
    "lead to the same parameters of layers.",
    change="""\
  import torch
  from torch import nn
  from torch.nn import functional as F

  encoder, predictor = nn.Linear(8, 4), nn.Linear(4, 4)
  x = torch.randn(16, 8)
  for _ in range(3):
      a = encoder(x + 0.1 * torch.randn(16, 8))
      b = encoder(x + 0.1 * torch.randn(16, 8))
-     loss = -F.cosine_similarity(predictor(a), b, dim=1).mean()
+     loss = -F.cosine_similarity(predictor(a), b.detach(), dim=1).mean()
      loss.backward()
""",
    remedy="Detach one side of each similarity, or add a term that keeps the outputs of different inputs apart.",
)


def collapsed_findings(fact: CollapsedOutputs) -> Iterator[Finding]:
    """Say what makes the loss small, and what would be against it."""
    where = line_of(fact.made[0] if fact.made else None)
    yield COLLAPSED.finding(
        text=f"In each of {fact.num_calls} calls, the loss was the negative of similarities ({where}), and nothing "
        "else. A gradient goes through both sides of each to the same layers, so they learn to return the same vector "
        "for every input.",
        places=(
            *(place for one in fact.made for place in place_of("compared", one)),
            *place_of("backward", fact.backward),
        ),
        remedy=f"At {where}, detach the side that is to be predicted, or compare with other examples as well.",
    )


JUDGE = Judge(CollapsedOutputs, collapsed_findings)
