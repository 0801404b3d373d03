"""Losses in which the divergence of a code counts more than all that the code can win."""

from collections.abc import Iterator

from gradinspect.checks.facts.objectives import OutweighedCode
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

OUTWEIGHED = Rule(
    code="GI335",
    title="the divergence of a code outweighs the error",
    summary="The error is a mean over elements, the divergence a sum over the code: no code is worth its divergence.",
    explanation="Using a code can lower the error to zero at most, and costs its divergence. Where the error is a mean "
    "over all elements of an image, it is below one from the start, and so is the divergence of each example that "
    "would be worth it, in nats: the encoder learns the prior, and the decoder the average image. Both belong to "
    "one likelihood, which is a sum over elements. Reported for normal distributions, where the error has at least "
    "16 elements for each example and its first values allow less than one nat.",
    change="""\
  import torch
  from torch import nn

  encoder, decoder = nn.Linear(64, 8), nn.Linear(4, 64)
  for _ in range(3):
      x = torch.rand(16, 64)
      mean, log_var = encoder(x).chunk(2, 1)
      z = mean + torch.randn(16, 4) * (log_var / 2).exp()
      error = nn.functional.mse_loss(decoder(z), x)
-     kl = -0.5 * (1 + log_var - mean**2 - log_var.exp()).sum(1).mean()
+     kl = -0.5 * (1 + log_var - mean**2 - log_var.exp()).sum(1).mean() / 64
      (error + kl).backward()
""",
    remedy="Sum the error over the elements of an example, too, or divide the divergence by how many there are.",
)


def outweighed_findings(fact: OutweighedCode) -> Iterator[Finding]:
    """Name both terms, and what is left for the code."""
    summed, error = line_of(fact.summed), line_of(fact.error)
    yield OUTWEIGHED.finding(
        text=f"{error} is a mean over the {fact.elements} elements of each example, and {summed} sums the divergence "
        f"over its code. No code can win more than the whole error, which leaves it {fact.nats:.2g} nats at most, in "
        f"each of {fact.num_calls} calls: the model does better without it.",
        places=(*place_of("sum", fact.summed), *place_of("mean", fact.error), *place_of("added", fact.used)),
        remedy="Sum both over the elements of an example, and average both over the examples: at "
        f"{error}, reduction='sum' divided by how many rows there are; at {summed}, the same, unless it is so already. "
        f"Or divide such a divergence by {fact.elements} at {line_of(fact.used)}.",
    )


JUDGE = Judge(OutweighedCode, outweighed_findings)
