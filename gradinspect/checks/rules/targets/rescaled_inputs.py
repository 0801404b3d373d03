"""Pixels that are divided by 255 a second time."""

from collections.abc import Iterator

from gradinspect.checks.facts.values import RescaledInputs
from gradinspect.checks.findings import Finding, line_of, place_of
from gradinspect.checks.rule import Judge, Rule

RESCALED = Rule(
    code="GI343",
    title="the inputs are divided by 255 twice",
    summary="Pixels that lie between 0 and 1 already are divided by 255 again, so all inputs are nearly the same.",
    explanation="Images are stored as bytes from 0 to 255, and divided by 255 once: by ToTensor(), by the dataset, or "
    "in the loop. If two of them do it, each input lies between 0 and 0.004. The first layer gets next to nothing of "
    "what tells the examples apart, and training is slow or stays where it is. Reported if what is divided by 255 lies "
    "between 0 and 1 before, with values in between, and what a layer is then given has a spread of 0.05 or less, in "
    "each channel and in each of three calls or more. Divisions by NumPy are not seen.",
    change="""\
  import torch
  from torch import nn

  images = torch.randint(0, 256, (60, 64)).float() / 255
  labels = torch.randint(0, 4, (60,))
  model = nn.Linear(64, 4)
  for i in range(0, 60, 20):
-     x = images[i : i + 20] / 255  # a second time
+     x = images[i : i + 20]
      loss = nn.functional.cross_entropy(model(x), labels[i : i + 20])
      loss.backward()
""",
    remedy="Divide by 255 once.",
    explains=("GI601",),
)


def rescaled_findings(fact: RescaledInputs) -> Iterator[Finding]:
    """Report the division that is one too many."""
    where = line_of(fact.divided)
    yield RESCALED.finding(
        text=f"What {where} divides by 255 lies between 0 and {fact.most:.3g} already, with values in between. So in "
        f"each of {fact.num_calls} calls, the values that {line_of(fact.used)} gives a layer, or one channel of it, "
        f"lie no further apart than {fact.spread:.2g}.",
        places=(*place_of("divided", fact.divided), *place_of("layer", fact.used)),
        remedy=f"Leave out the division at {where}, or the one before it.",
    )


JUDGE = Judge(RescaledInputs, rescaled_findings)
