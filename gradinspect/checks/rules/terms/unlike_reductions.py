"""Losses that add a sum over the batch to a mean over it."""

from collections.abc import Iterator

from gradinspect.checks.facts.objectives import UnlikeReductions
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

UNLIKE = Rule(
    code="GI332",
    title="a sum over the batch is added to a mean",
    summary="One term grows with the number of examples and the other does not: the batch size sets their balance.",
    explanation="A reconstruction with the default reduction is a mean over all elements, and a divergence that ends "
    "with torch.sum() is a sum over all examples. Added up, the divergence counts as many times as there are "
    "examples, and the model learns the prior; the other way round, it ignores the prior. Reported where both come "
    "from the same values of a batch, in each call. A sum that is divided by the number of examples is a mean, one "
    "with a weight below 0.1 counts as balanced by hand, and a penalty of parameters has no examples.",
    change="""\
  import torch
  from torch import nn

  encoder, decoder = nn.Linear(8, 4), nn.Linear(2, 8)
  for _ in range(3):
      x = torch.rand(16, 8)
      mean, log_var = encoder(x).chunk(2, 1)
      z = mean + torch.randn(16, 2) * (log_var / 2).exp()
      error = nn.functional.mse_loss(decoder(z), x)
-     kl = -0.5 * torch.sum(1 + log_var - mean**2 - log_var.exp())
+     kl = -0.5 * torch.mean(1 + log_var - mean**2 - log_var.exp())
      (error + kl).backward()
""",
    remedy="Reduce both terms alike: by the mean, or by sums over the features that are averaged over the examples.",
)


def unlike_findings(fact: UnlikeReductions) -> Iterator[Finding]:
    """Name both terms."""
    summed, mean = line_of(fact.summed), line_of(fact.averaged)
    yield UNLIKE.finding(
        text=f"The loss adds what {summed} sums over all {fact.rows} rows of the batch to what {mean} averages. In "
        f"each of {fact.num_calls} calls the sum counts as {fact.rows} examples, the mean as one: the batch size sets "
        "their balance.",
        places=(
            *place_of("layer", fact.layer),
            *place_of("sum", fact.summed),
            *place_of("mean", fact.averaged),
            *place_of("added", fact.used),
        ),
        remedy=f"Reduce both alike: at {summed}, take the mean, or divide by how many rows it has.",
    )


JUDGE = Judge(UnlikeReductions, unlike_findings)
