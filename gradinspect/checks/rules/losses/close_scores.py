"""Cosines that are given to a cross entropy without a temperature."""

from collections.abc import Iterator
from math import log

from gradinspect.checks.facts.targets import CloseScores
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

CLOSE = Rule(
    code="GI347",
    title="the scores are too close together for their loss",
    summary="A cross entropy is given cosines, which lie between -1 and 1, so that it cannot come near zero.",
    explanation="The product of two vectors of length 1 lies between -1 and 1. A softmax of such scores is never sure: "
    "with 100 classes, even perfect vectors leave a loss of 2.67, of the 4.61 that guessing has, and all gradients are "
    "small. Contrastive losses and cosine classifiers divide the scores by a temperature, of about 0.07 to 0.1, or "
    "multiply them by a scale that may be learned.",
    change="""\
  import torch
  from torch import nn
  from torch.nn.functional import normalize

  encoder, classes = nn.Linear(16, 8), nn.Parameter(torch.randn(50, 8))
  x, y = torch.randn(64, 16), torch.randint(50, (64,))
  for _ in range(3):
-     scores = normalize(encoder(x)) @ normalize(classes).T  # -1 to 1
+     scores = normalize(encoder(x)) @ normalize(classes).T / 0.07
      loss = nn.functional.cross_entropy(scores, y)
      loss.backward()
""",
    remedy="Divide the scores by a temperature.",
)


def close_findings(fact: CloseScores) -> Iterator[Finding]:
    """Report a loss that cannot fall."""
    yield CLOSE.finding(
        text=f"cross_entropy gets products of vectors of length 1, which lie between -1 and 1. With "
        f"{fact.num_classes:,} classes it cannot fall below {fact.floor:.2f}, of the {log(fact.num_classes):.2f} that "
        "guessing has.",
        places=(*place_of("scores", fact.made), *place_of("loss", None if fact.used == fact.made else fact.used)),
        remedy=f"Divide the scores of {line_of(fact.made)} by a temperature, such as 0.07.",
    )


JUDGE = Judge(CloseScores, close_findings)
